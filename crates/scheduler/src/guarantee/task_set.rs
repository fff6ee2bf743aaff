//! Changing set of admitted tasks.

use super::slack::{Mode, Rejection, Slack, of_sorted};
use super::task::Task;
use super::utilisation::Utilisation;

/// Identifier of a task in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(u64);

/// Admitted tasks of one device, with their slack.
///
/// An empty set, and every set after [`TaskSet::admit`], is schedulable.
#[derive(Debug, Clone)]
pub struct TaskSet {
    mode: Mode,
    /// By period, cost and name.
    tasks: Vec<(Task, TaskId)>,
    names: u64,
    slack: Option<Slack>,
}

impl TaskSet {
    /// An empty set.
    pub fn new(mode: Mode) -> TaskSet {
        TaskSet { mode, tasks: Vec::new(), names: 0, slack: None }
    }

    /// Adds a task if all deadlines can still be met.
    ///
    /// # Errors
    /// The deadlines cannot be met; the set is unchanged. The index of [`Rejection::Blocked`] refers to [`TaskSet::tasks`] with
    /// the new task in its order.
    pub fn admit(&mut self, task: Task) -> Result<TaskId, Rejection> {
        let id = TaskId(self.names);
        let at = self.tasks.partition_point(|entry| *entry <= (task, id));
        self.tasks.insert(at, (task, id));
        match self.test() {
            Ok(slack) => {
                self.slack = slack;
                self.names += 1;
                Ok(id)
            }
            Err(rejection) => {
                self.tasks.remove(at);
                Err(rejection)
            }
        }
    }

    /// Removes a task; returns whether it was in the set.
    pub fn remove(&mut self, id: TaskId) -> bool {
        let Some(at) = self.tasks.iter().position(|(_, known)| *known == id) else { return false };
        self.tasks.remove(at);
        // Without a task the rest leaves no less; what could not be decided before was not admitted.
        if let Ok(slack) = self.test() {
            self.slack = slack;
        }
        true
    }

    fn test(&self) -> Result<Option<Slack>, Rejection> {
        let sorted = self.tasks.iter().enumerate();
        of_sorted(sorted.map(|(index, (task, _))| (task.period_ns(), task.cost_ns(), index)), self.mode)
    }

    /// Slack; `None` without tasks.
    pub fn slack(&self) -> Option<Slack> {
        self.slack
    }

    /// Tasks, the shortest period first.
    pub fn tasks(&self) -> impl ExactSizeIterator<Item = (TaskId, Task)> {
        self.tasks.iter().map(|(task, id)| (*id, *task))
    }

    /// Utilisation of the tasks.
    pub fn utilisation(&self) -> Utilisation {
        let tasks: Vec<Task> = self.tasks.iter().map(|(task, _)| *task).collect();
        Utilisation::of(&tasks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(cost_ns: u64, period_ns: u64) -> Task {
        Task::new(cost_ns, period_ns).unwrap()
    }

    #[test]
    fn streams_come_and_go() {
        let mut set = TaskSet::new(Mode::Exact);
        assert!(set.slack().is_none() && set.utilisation().fits());
        let first = set.admit(task(20, 30)).unwrap();
        assert_eq!(set.slack().unwrap().slack_ns(), 10);
        let second = set.admit(task(10, 40)).unwrap();
        assert_eq!(set.slack().unwrap().slack_ns(), 1);
        assert!(matches!(set.admit(task(12, 100)), Err(Rejection::Overload { .. })));
        // A request of 12 and one of 20 do not go into 31.
        let blocked = Rejection::Blocked { task: 2, interval_ns: 31, shortfall_ns: 1 };
        assert_eq!(set.admit(task(12, 1000)), Err(blocked));
        assert_eq!(set.tasks().len(), 2);
        assert_eq!(set.slack().unwrap().slack_ns(), 1);
        assert!(set.remove(second) && !set.remove(second));
        assert_eq!(set.slack().unwrap().slack_ns(), 10);
        // Names are not reused.
        assert_ne!(set.admit(task(1, 1000)).unwrap(), second);
        assert!(set.remove(first));
    }

    #[test]
    fn a_rejection_names_the_task_in_its_place() {
        let mut set = TaskSet::new(Mode::Thesis);
        for (cost_ns, period_ns) in [(163, 2000), (42, 250), (122, 1000)] {
            set.admit(task(cost_ns, period_ns)).unwrap();
        }
        let rejection = set.admit(task(69, 250)).unwrap_err();
        assert_eq!(rejection, Rejection::Blocked { task: 3, interval_ns: 251, shortfall_ns: 23 });
        assert_eq!(set.tasks().len(), 3);
    }
}
