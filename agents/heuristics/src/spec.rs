//! A policy by name with parameters, as people write it: `runbook`, `fixed-20`,
//! `hpa:target=0.5,min=6`.

use crate::registry::{self, Description};
use std::fmt;
use std::str::FromStr;

/// Why a policy cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(String);

impl PolicyError {
    pub(crate) fn new(message: String) -> Self {
        Self(message)
    }
}

/// A policy by name, with the parameters that were given.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicySpec {
    /// Name of the policy; see [`crate::names`].
    pub name: String,
    /// Parameters by name; the others have their tuned or default values.
    pub params: Vec<(String, f64)>,
}

impl PolicySpec {
    /// A policy without given parameters; the name is checked when it is built.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), params: Vec::new() }
    }

    /// A policy with a full row of values in the order of its table.
    pub fn from_values(description: &Description, values: &[f64]) -> Self {
        let params = description.params.iter().zip(values);
        Self {
            name: description.name.to_owned(),
            params: params
                .filter(|(_, value)| !value.is_nan())
                .map(|(param, &value)| (param.name.to_string(), value))
                .collect(),
        }
    }

    /// Checks name, parameters and ranges.
    pub fn check(&self) -> Result<&'static Description, PolicyError> {
        let description = registry::describe(&self.name).ok_or_else(|| unknown_name(&self.name))?;
        for (index, (name, value)) in self.params.iter().enumerate() {
            let Some(param) = description.params.iter().find(|param| param.name == *name) else {
                return Err(unknown_param(description, name));
            };
            if self.params[..index].iter().any(|(earlier, _)| earlier == name) {
                return Err(PolicyError(format!(
                    "policy `{}`: parameter `{name}` is given twice",
                    self.name
                )));
            }
            if !param.accepts(*value) {
                return Err(PolicyError(format!(
                    "policy `{}`: parameter `{name}` is {value}, expected {}",
                    self.name,
                    param.expected()
                )));
            }
        }
        Ok(description)
    }

    /// All values in the order of the table: given ones, else those of `tuned`, else the defaults;
    /// NaN where a dial is left as it stands.
    pub(crate) fn values(
        &self,
        tuned: &[&[(String, f64)]],
    ) -> Result<(&'static Description, Vec<f64>), PolicyError> {
        let description = self.check()?;
        let mut values: Vec<f64> =
            description.params.iter().map(|param| param.default.unwrap_or(f64::NAN)).collect();
        for (name, value) in tuned.iter().copied().flatten().chain(&self.params) {
            if let Some(index) = description.params.iter().position(|param| param.name == *name) {
                values[index] = *value;
            }
        }
        Ok((description, values))
    }
}

fn unknown_name(name: &str) -> PolicyError {
    let known: Vec<&str> = registry::names().collect();
    PolicyError(format!(
        "policy `{name}` is not known, expected one of {}, or fixed-N for N instances",
        known.join(", ")
    ))
}

fn unknown_param(description: &Description, name: &str) -> PolicyError {
    let policy = description.name;
    if description.params.is_empty() {
        return PolicyError(format!("policy `{policy}` has no parameters, found `{name}`"));
    }
    let list = |param: &crate::Param| format!("{} ({})", param.name, param.expected());
    let known: Vec<String> = description.params.iter().take(LISTED_MAX).map(list).collect();
    let more = description.params.len() - known.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    PolicyError(format!(
        "policy `{policy}`: parameter `{name}` is not known, expected one of {}{more}",
        known.join(", ")
    ))
}

/// A schedule has some hundred parameters; an error names the first of them.
const LISTED_MAX: usize = 40;

impl FromStr for PolicySpec {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let (name, given) = match text.trim().split_once(':') {
            Some((name, given)) => (name.trim(), Some(given)),
            None => (text.trim(), None),
        };
        let mut spec = Self::new(name);
        if let Some(count) =
            name.strip_prefix("fixed-").filter(|_| registry::describe(name).is_none())
        {
            let count = number(name, "min_instances", count)?;
            spec = Self::new("fixed");
            spec.params = vec![("min_instances".to_owned(), count), ("autoscale".to_owned(), 0.0)];
        }
        for part in given.into_iter().flat_map(|given| given.split(',')) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(PolicyError(format!(
                    "policy `{name}`: `{}` is not a parameter, expected name=value",
                    part.trim()
                )));
            };
            let key = key.trim();
            spec.params.push((key.to_owned(), number(name, key, value)?));
        }
        spec.check()?;
        Ok(spec)
    }
}

fn number(policy: &str, param: &str, text: &str) -> Result<f64, PolicyError> {
    match text.trim().parse() {
        Ok(value) => Ok(value),
        Err(_) if text.trim() == "on" => Ok(1.0),
        Err(_) if text.trim() == "off" => Ok(0.0),
        Err(_) => Err(PolicyError(format!(
            "policy `{policy}`: parameter `{param}` is `{}`, expected a number",
            text.trim()
        ))),
    }
}

/// Prints what [`PolicySpec::from_str`] reads.
impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, (name, value)) in self.params.iter().enumerate() {
            let separator = if index == 0 { ':' } else { ',' };
            write!(f, "{separator}{name}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<PolicySpec>().unwrap_err().to_string()
    }

    #[test]
    fn names_and_parameters_are_read() {
        let spec: PolicySpec = " hpa : target=0.5, min=6 ".parse().unwrap();
        assert_eq!(spec.name, "hpa");
        assert_eq!(spec.params, [("target".to_owned(), 0.5), ("min".to_owned(), 6.0)]);
        assert_eq!(spec.to_string(), "hpa:target=0.5,min=6");
        let fixed: PolicySpec = "fixed-20".parse().unwrap();
        assert_eq!(fixed.to_string(), "fixed:min_instances=20,autoscale=0");
        assert_eq!("fixed:feature=off".parse::<PolicySpec>().unwrap().params[0].1, 0.0);
        for name in registry::names() {
            assert_eq!(name.parse::<PolicySpec>().unwrap(), PolicySpec::new(name));
        }
    }

    #[test]
    fn errors_name_what_is_wrong_and_what_was_expected() {
        let unknown = error("runbok");
        assert!(unknown.contains("`runbok`") && unknown.contains("runbook, "), "{unknown}");
        let param = error("hpa:taget=0.5");
        assert!(param.contains("`taget`") && param.contains("target (a number from"), "{param}");
        assert_eq!(
            error("hpa:target=5"),
            "policy `hpa`: parameter `target` is 5, expected a number from 0.1 to 0.95"
        );
        assert_eq!(
            error("hpa:target=x"),
            "policy `hpa`: parameter `target` is `x`, expected a number"
        );
        assert_eq!(
            error("hpa:target"),
            "policy `hpa`: `target` is not a parameter, expected name=value"
        );
        assert_eq!(error("hpa:min=4,min=5"), "policy `hpa`: parameter `min` is given twice");
        assert_eq!(error("hold:x=1"), "policy `hold` has no parameters, found `x`");
        assert!(error("hpa:min=4.5").contains("a whole number from 1 to 40"));
        assert!(error("hpa:target=NaN").contains("is NaN, expected"));
        assert!(error("fixed-41").contains("is 41, expected a whole number from 1 to 40"));
        assert!(error("fixed-many").contains("is `many`, expected a number"));
        assert!(error("").contains("policy `` is not known"));
    }

    #[test]
    fn given_parameters_win_over_tuned_over_defaults() {
        let tuned = [("target".to_owned(), 0.7), ("min".to_owned(), 9.0)];
        let spec: PolicySpec = "hpa:min=6".parse().unwrap();
        let (description, values) = spec.values(&[&tuned]).unwrap();
        let of =
            |name: &str| values[description.params.iter().position(|p| p.name == name).unwrap()];
        assert_eq!((of("target"), of("min"), of("tolerance")), (0.7, 6.0, 0.1));
        let full = PolicySpec::from_values(description, &values);
        assert_eq!(full.to_string().parse::<PolicySpec>().unwrap(), full);
    }
}
