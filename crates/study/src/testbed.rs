//! Testbed of a run.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Testbed of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Testbed {
    /// Real kernel block devices in real time.
    Device,
    /// Simulated disks and schedulers in virtual time.
    Simulator,
    /// Admission control only: which streams are admitted, and when. No request is served.
    Admission,
}

impl Testbed {
    /// Whether it is in virtual time and needs no device.
    pub fn is_virtual(self) -> bool {
        self != Testbed::Device
    }

    /// Its name in studies.
    pub fn name(self) -> &'static str {
        match self {
            Testbed::Device => "device",
            Testbed::Simulator => "simulator",
            Testbed::Admission => "admission",
        }
    }
}

/// One testbed, or both: `device`, `simulator` or `[device, simulator]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Testbeds(Vec<Testbed>);

impl Testbeds {
    /// All of them, each once; at least one.
    pub fn all(&self) -> &[Testbed] {
        &self.0
    }

    /// Whether none of them needs a device.
    pub fn are_virtual(&self) -> bool {
        self.0.iter().all(|testbed| testbed.is_virtual())
    }

    /// Whether it is this one alone.
    pub fn is_only(&self, testbed: Testbed) -> bool {
        self.0 == [testbed]
    }

    /// Whether there are two.
    pub fn are_two(&self) -> bool {
        self.0.len() > 1
    }
}

impl From<Testbed> for Testbeds {
    fn from(testbed: Testbed) -> Self {
        Testbeds(vec![testbed])
    }
}

impl TryFrom<Value> for Testbeds {
    type Error = serde_json::Error;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        use serde::de::Error as _;
        let Value::Array(names) = value else { return Ok(serde_json::from_value::<Testbed>(value)?.into()) };
        let mut testbeds = Vec::new();
        for name in names {
            let testbed: Testbed = serde_json::from_value(name)?;
            if testbeds.contains(&testbed) {
                return Err(Self::Error::custom(format!("`{}` is given twice", testbed.name())));
            }
            testbeds.push(testbed);
        }
        if testbeds.len() > 1 && testbeds.contains(&Testbed::Admission) {
            return Err(Self::Error::custom(
                "has `admission`, which answers other questions than the others: name it alone",
            ));
        }
        if testbeds.is_empty() {
            return Err(Self::Error::custom("is empty; name device, simulator or both"));
        }
        Ok(Testbeds(testbeds))
    }
}

impl From<Testbeds> for Value {
    fn from(testbeds: Testbeds) -> Value {
        let mut names: Vec<Value> = testbeds.0.iter().map(|testbed| testbed.name().into()).collect();
        if names.len() == 1 { names.remove(0) } else { Value::Array(names) }
    }
}

impl JsonSchema for Testbeds {
    fn schema_name() -> Cow<'static, str> {
        "Testbeds".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<Testbed>();
        json_schema!({
            "description": "One testbed, or both: the same question side by side",
            "anyOf": [one, {"type": "array", "items": one, "minItems": 1, "uniqueItems": true}]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Testbeds, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn one_or_both_are_read_and_written_alike() {
        for text in ["\"device\"", "\"simulator\"", "[\"device\",\"simulator\"]"] {
            assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
        }
    }

    #[test]
    fn none_twice_and_another_are_refused() {
        assert!(read("[]").unwrap_err().contains("is empty"));
        assert!(read("[\"device\", \"device\"]").unwrap_err().contains("twice"));
        assert!(
            read("[\"divice\"]").unwrap_err().contains("`divice`, expected one of `device`, `simulator`")
        );
        assert!(read("7").is_err());
    }
}
