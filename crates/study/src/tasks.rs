//! Task files: streams of one disk, for `weir admit`.

use schemars::JsonSchema;
use serde::Deserialize;
use weir_scheduler::guarantee::Task;
use weir_specs::{Document, Problems};

/// Streams that share one disk.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskFile {
    /// Description for readers.
    #[serde(default)]
    pub description: String,
    /// The streams.
    pub tasks: Vec<TaskSpec>,
}

/// Streams of one kind.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// Their name.
    pub name: String,
    /// Longest service time of a request, in ms.
    pub cost_ms: f64,
    /// Shortest time from one request of a stream to the next, and time to its deadline, in ms.
    pub period_ms: f64,
    /// Number of streams.
    #[serde(default = "one")]
    pub streams: u32,
}

fn one() -> u32 {
    1
}

/// Streams that a file can have.
const MOST_STREAMS: u64 = 100_000;

impl TaskFile {
    /// Reads and checks a document. Returns each stream as a task, with the index of its entry in the file.
    ///
    /// # Errors
    /// All its problems.
    pub fn from_document(document: &Document) -> Result<(TaskFile, Vec<(usize, Task)>), Problems> {
        let file: TaskFile = document.parse_all()?;
        let mut problems = Problems::default();
        let mut wrong = |field: String, message: String| problems.0.push(document.problem(field, message));
        if file.tasks.is_empty() {
            wrong("tasks".to_owned(), "is empty: add a stream".to_owned());
        }
        let mut tasks = Vec::new();
        let mut streams = 0;
        for (place, spec) in file.tasks.iter().enumerate() {
            if file.tasks[..place].iter().any(|other| other.name == spec.name) {
                let message = format!("`{}` is the name of another: choose one that is not taken", spec.name);
                wrong(format!("tasks.{place}.name"), message);
            }
            streams += u64::from(spec.streams);
            if spec.streams == 0 {
                wrong(format!("tasks.{place}.streams"), "is 0; leave the task out instead".to_owned());
            } else if streams > MOST_STREAMS {
                let message = format!("makes {streams} streams in all; there can be {MOST_STREAMS}");
                wrong(format!("tasks.{place}.streams"), message);
                break;
            }
            match Task::from_ms(spec.cost_ms, spec.period_ms) {
                Ok(task) => tasks.extend((0..spec.streams).map(|_| (place, task))),
                Err((field, message)) => wrong(format!("tasks.{place}.{field}"), message),
            }
        }
        problems.or((file, tasks))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(text: &str) -> Result<Vec<(usize, Task)>, String> {
        let document =
            Document::from_text(Path::new("t.yml"), text).map_err(|problems| problems.to_string())?;
        TaskFile::from_document(&document).map(|(_, tasks)| tasks).map_err(|problems| problems.to_string())
    }

    #[test]
    fn streams_are_tasks_in_whole_ns() {
        let text = "tasks:\n- {name: a, cost_ms: 133, period_ms: 3134.693878}\n- {name: b, cost_ms: 0.000001, period_ms: 2, streams: 2}\n";
        let tasks = read(text).unwrap();
        let of = |cost, period| Task::new(cost, period).unwrap();
        assert_eq!(
            tasks,
            [(0, of(133_000_000, 3_134_693_878)), (1, of(1, 2_000_000)), (1, of(1, 2_000_000))]
        );
    }

    #[test]
    fn what_is_wrong_is_named_by_field_and_value() {
        let bad = |fields: &str| read(&format!("tasks:\n- {{name: a, {fields}}}\n")).unwrap_err();
        assert_eq!(
            bad("cost_ms: 0, period_ms: 2"),
            "t.yml:2: tasks.0.cost_ms: is 0; it must be above 0 and at most 1000000000 ms"
        );
        assert!(bad("cost_ms: 1, period_ms: -3").contains("tasks.0.period_ms: is -3;"));
        assert!(
            bad("cost_ms: 1, period_ms: .nan").contains("t.yml:2: found `.nan`, expected a finite number")
        );
        assert!(bad("cost_ms: 1, perod_ms: 3").contains("did you mean `period_ms`?"));
        assert!(bad("cost_ms: 1").contains("`period_ms` is missing"));
        assert!(bad("cost_ms: 1, period_ms: 3, streams: 0").contains("tasks.0.streams: is 0; leave"));
        assert!(bad("cost_ms: 1, period_ms: 3, streams: 4000000000").contains("there can be 100000"));
        assert!(read("tasks: []\n").unwrap_err().contains("tasks: is empty"));
        let twice = "tasks:\n- {name: a, cost_ms: 1, period_ms: 2}\n- {name: a, cost_ms: 1, period_ms: 2}\n";
        assert!(read(twice).unwrap_err().contains("t.yml:3: tasks.1.name: `a` is the name of another"));
    }
}
