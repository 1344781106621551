//! CSV of demand and of dials, good and bad.

use oncall_scenario::{ScenarioErrors, demand_csv, dials_csv};

fn demand(text: &str) -> Vec<f64> {
    demand_csv("d.csv", text).unwrap_or_else(|errors| panic!("{text:?}: {errors}"))
}

fn paths<T: std::fmt::Debug>(result: Result<T, ScenarioErrors>) -> Vec<String> {
    let errors = result.expect_err("a file with mistakes");
    assert!(errors.problems().iter().all(|problem| problem.file.as_deref() == Some("d.csv")));
    errors.problems().iter().map(|problem| problem.path.clone()).collect()
}

#[test]
fn demand_is_read_from_both_kinds_of_file() {
    assert_eq!(demand("requests_per_s\n10\n20.5\n0\n"), [10.0, 20.5, 0.0]);
    assert_eq!(demand("\u{feff}Requests_per_s\r\n1e3\r\n\r\n"), [1000.0]);
    assert_eq!(
        demand("timestamp,count\n2024-01-01 00:00:00,60\n2024-01-01 00:01:00,120\n"),
        [1.0, 2.0]
    );
    assert_eq!(
        demand("time , requests\n2024-01-01T00:00, 600\n2024-01-01T00:05, 300\n"),
        [2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    );
    assert_eq!(demand("timestamp,value\n0,10\n20,20\n40,30\n60,40\n"), [1.0, 2.0]);
    assert_eq!(demand("t,load_rps\n0,10\n60,20\n"), [10.0, 20.0]);
    // Over midnight and over a leap day.
    assert_eq!(
        demand("timestamp,count\n2024-02-28 23:59:00,60\n2024-02-29 00:00:00,120\n"),
        [1.0, 2.0]
    );
}

#[test]
fn bad_demand_is_refused_with_its_line() {
    for (text, path) in [
        ("", "line 1"),
        ("\n\n", "line 1"),
        ("requests_per_s\n", "line 2"),
        ("timestamp,count\n", "line 2"),
        ("timestamp,count\n0,5\n", "line 3"),
        ("10\n20\n", "line 1"),
        ("rate\n20\n", "line 1"),
        ("0,5\n60,5\n", "line 1"),
        ("timestamp,5\n0,5\n60,5\n", "line 1"),
        ("timestamp;count\n0;5\n60;5\n", "line 1"),
        ("a,b,c\n1,2,3\n", "line 1"),
        ("count,timestamp\n5,0\n5,60\n", "line 1"),
        ("requests_per_s\n1\n\n2\n", "line 3"),
        ("\n\nrequests_per_s\r\n1\r\n\r\n2\r\n", "line 5"),
        ("requests_per_s\r\n1\r\nmany\r\n", "line 3, column requests_per_s"),
        ("timestamp,count\n0,5\n\n\n60,many", "line 5, column count"),
        ("requests_per_s\n1\nmany\n", "line 3, column requests_per_s"),
        ("requests_per_s\n1\n-2\n", "line 3, column requests_per_s"),
        ("requests_per_s\nNaN\n", "line 2, column requests_per_s"),
        ("requests_per_s\n1\ninf\n", "line 3, column requests_per_s"),
        ("requests_per_s\n1\n1,5\n", "line 3"),
        ("requests_per_s\n1\n1000001\n", "minute 1"),
        ("timestamp,count\n0,5\n60,\n", "line 3, column count"),
        ("timestamp,count\n0,5\n60\n120,4\n", "line 3"),
        ("timestamp,count\n0,5\n60,5\n180,5\n240,5\n", "line 4, column timestamp"),
        ("timestamp,count\n0,5\n60,5\n60,5\n120,5\n180,5\n", "line 4, column timestamp"),
        ("timestamp,count\n60,5\n0,5\n", "line 3, column timestamp"),
        ("timestamp,count\n0,5\n0,5\n", "line 3, column timestamp"),
        (
            "timestamp,count\n2024-01-01 00:00:00,5\n2024-01-32 00:00:00,5\n",
            "line 3, column timestamp",
        ),
        ("timestamp,count\nnoon,5\n60,5\n", "line 2, column timestamp"),
        ("timestamp,count\n0,5\n1e12,5\n", "the whole file"),
    ] {
        let found = paths(demand_csv("d.csv", text));
        assert_eq!(found[0], path, "{text:?}: {found:?}");
    }
}

#[test]
fn all_mistakes_of_a_csv_are_reported_up_to_a_limit() {
    let text = "timestamp,count\n0,5\n60,x\n180,-5\n240,5\n300,5\n";
    let found = paths(demand_csv("d.csv", text));
    assert_eq!(found, ["line 3, column count", "line 4, column count", "line 4, column timestamp"]);
    let many = format!("requests_per_s\n{}", "x\n".repeat(1000));
    assert_eq!(paths(demand_csv("d.csv", &many)).len(), 20);
}

#[test]
fn dials_are_read_by_name() {
    let spec = oncall_fleet::world::spec();
    let text = "cache_ttl_s,min_instances,rollback\n0,12,0\n600,40,1\n";
    let rows = dials_csv("d.csv", text, &spec).unwrap_or_else(|errors| panic!("{errors}"));
    let at = |row: usize, name: &str| rows[row][spec.dial(name).expect("a dial")];
    assert_eq!((at(0, "cache_ttl_s"), at(0, "min_instances"), at(0, "rollback")), (0.0, 12.0, 0.0));
    assert_eq!(
        (at(1, "cache_ttl_s"), at(1, "min_instances"), at(1, "rollback")),
        (600.0, 40.0, 1.0)
    );
    assert!(at(0, "shed_share").is_nan() && at(1, "feature").is_nan());
    assert!(rows.len() == 2 && rows.iter().all(|row| row.len() == spec.dials.len()));
}

#[test]
fn bad_dials_are_refused_with_line_and_column() {
    let spec = oncall_fleet::world::spec();
    for (text, path) in [
        ("", "line 1"),
        ("cache_ttl_s\n", "line 2"),
        ("cache_ttl\n60\n", "line 1, column 1"),
        ("feature,cache_ttl_s,feature\n1,60,1\n", "line 1, column 3"),
        ("cache_ttl_s\n60\n601\n", "line 3, column cache_ttl_s"),
        ("cache_ttl_s\n-1\n", "line 2, column cache_ttl_s"),
        ("shed_share,cache_ttl_s\n0,60\n0,NaN\n", "line 3, column cache_ttl_s"),
        ("shed_share,cache_ttl_s\n0,60\n,60\n", "line 3, column shed_share"),
        ("cache_ttl_s\n60\n\n60\n", "line 3"),
        ("cache_ttl_s,feature\n60\n", "line 2"),
    ] {
        assert_eq!(paths(dials_csv("d.csv", text, &spec))[0], path, "{text:?}");
    }
    let errors = dials_csv("d.csv", "cache_tl_s\n60\n", &spec).expect_err("a misspelt dial");
    assert!(errors.to_string().contains("did you mean `cache_ttl_s`?"), "{errors}");
    let errors = dials_csv("d.csv", "cache_ttl_s\n700\n", &spec).expect_err("out of range");
    assert_eq!(
        errors.to_string(),
        "d.csv: line 2, column cache_ttl_s: found \"700\", expected a number from 0 to 600"
    );
}
