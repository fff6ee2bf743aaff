//! Notation of a tree in a study: `tree=A:0.5(text:0.65,video:w3),B:0.5(backup)`.
//!
//! A node is a name, then `:` and its share of the parent, then its children in parentheses. A share is a fraction (`0.65`
//! or `65%`), a weight (`w3`) or a bandwidth in KB/s (`4000kb_s`). Without a share, a class has its weight and a group
//! weight 1. A name with children is a group, a name without is a class of the study. Classes without a node are children
//! of the root with their weights.

use super::bucket::Rate;
use super::tree::{NodeId, Reservation, Tree, TreeError};
use crate::request::Class;
use crate::settings::SettingError;

/// Maximum depth of nested groups.
const MOST_LEVELS: usize = 16;
const WEIGHTS: std::ops::RangeInclusive<f64> = 0.001..=1_000_000.0;

/// A possible node of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) name: String,
    /// Its place in the plan; `None` below the root.
    pub(super) parent: Option<usize>,
    pub(super) reservation: Reservation,
}

/// Groups and classes; parents precede their children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) nodes: Vec<Planned>,
    /// Index of each class.
    pub(super) of_class: Vec<usize>,
    /// Bandwidth reserved from the root.
    pub(super) firm: Rate,
}

impl Plan {
    /// Tree of a setting for classes; without text all classes are below the root.
    ///
    /// # Errors
    /// The text is invalid.
    pub(super) fn read(text: Option<&str>, classes: &[Class], root: Rate) -> Result<Plan, SettingError> {
        let refused = |problem| SettingError::Classes { policy: super::NAME, problem };
        let mut reader =
            Reader { rest: text.unwrap_or_default(), classes, plan: Vec::new(), groups: Vec::new() };
        if let Some(text) = text {
            reader.children(None, 0).and_then(|()| reader.ends()).map_err(|problem| {
                let place = text.len() - reader.rest.len();
                refused(format!(
                    "tree: character {}: {problem}. Write a tree like A:0.5(a:0.65,b:w3),B:4000kb_s(c)",
                    text[..place].chars().count() + 1
                ))
            })?;
        }
        let Reader { mut plan, groups, .. } = reader;
        let mut of_class = Vec::new();
        for class in classes {
            let place =
                (0..plan.len()).find(|place| !groups.contains(place) && plan[*place].name == class.name);
            of_class.push(place.unwrap_or(plan.len()));
            if place.is_none() {
                let reservation = weight_of(class).map_err(refused)?;
                plan.push(Planned { name: class.name.clone(), parent: None, reservation });
            }
        }
        let firm = check(&plan, root).map_err(refused)?;
        Ok(Plan { nodes: plan, of_class, firm })
    }
}

/// Builds the whole tree once: no part of it is refused later; returns the reserved bandwidth.
fn check(plan: &[Planned], root: Rate) -> Result<Rate, String> {
    let mut tree = Tree::new(root, 0);
    let mut ids: Vec<NodeId> = Vec::new();
    let mut firm = Rate::default();
    for node in plan {
        let parent = node.parent.map_or(Tree::ROOT, |place| ids[place]);
        let id = tree.add(parent, node.reservation).map_err(|error| match (error, node.parent) {
            (TreeError::Bandwidths, None) => format!(
                "tree: {} and the other bandwidths exceed root_kb_s. Raise root_kb_s or lower a bandwidth",
                node.name
            ),
            (_, Some(parent)) => format!("tree: {} in {}: {error}", node.name, plan[parent].name),
            (_, None) => format!("tree: {}: {error}", node.name),
        })?;
        ids.push(id);
        if let (None, Reservation::Bandwidth(rate)) = (node.parent, node.reservation) {
            firm = firm.plus(rate);
        }
    }
    Ok(firm)
}

fn weight_of(class: &Class) -> Result<Reservation, String> {
    weight(class.weight).ok_or_else(|| {
        format!(
            "class `{}` has weight {}, expected {} to {}",
            class.name,
            class.weight,
            WEIGHTS.start(),
            WEIGHTS.end()
        )
    })
}

fn weight(weight: f64) -> Option<Reservation> {
    WEIGHTS.contains(&weight).then(|| Reservation::Weight((weight * 1e6).round() as u64))
}

struct Reader<'a> {
    rest: &'a str,
    classes: &'a [Class],
    plan: Vec<Planned>,
    /// Positions of the nodes with children.
    groups: Vec<usize>,
}

impl<'a> Reader<'a> {
    fn children(&mut self, parent: Option<usize>, level: usize) -> Result<(), String> {
        if level > MOST_LEVELS {
            return Err(format!("too many nested groups (expected at most {MOST_LEVELS})"));
        }
        loop {
            self.node(parent, level)?;
            if !self.takes(',') {
                return Ok(());
            }
        }
    }

    fn node(&mut self, parent: Option<usize>, level: usize) -> Result<(), String> {
        let name = self.word(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        if name.is_empty() {
            return Err("missing name".to_owned());
        }
        if self.plan.iter().any(|node| node.name == name) {
            return Err(format!("duplicate name `{name}`"));
        }
        let class = self.classes.iter().find(|class| class.name == name);
        let given = if self.takes(':') { Some(self.reservation()?) } else { None };
        let is_group = self.takes('(');
        let reservation = match (given, class) {
            (Some(reservation), _) => reservation,
            (None, Some(class)) => weight_of(class)?,
            (None, None) => Reservation::EQUAL,
        };
        let place = self.plan.len();
        self.plan.push(Planned { name: name.to_owned(), parent, reservation });
        match (is_group, class) {
            (true, Some(_)) => Err(format!("`{name}` is a class and cannot have children. Rename the group")),
            (true, None) => {
                self.groups.push(place);
                self.children(Some(place), level + 1)?;
                if self.takes(')') { Ok(()) } else { Err(format!("missing `)` of {name}")) }
            }
            (false, Some(_)) => Ok(()),
            (false, None) => {
                let known: Vec<&str> = self.classes.iter().map(|class| class.name.as_str()).collect();
                let known = known.join(", ");
                Err(format!("`{name}` has no children and is no class; the classes are {known}"))
            }
        }
    }

    fn reservation(&mut self) -> Result<Reservation, String> {
        let text = self.word(|c| c.is_ascii_alphanumeric() || "._%".contains(c));
        let is_share = |share: f64| share > 0.0 && share <= 1.0;
        let share = |share: f64| Reservation::Fraction((share * Reservation::WHOLE as f64).round() as u64);
        let number = |text: &str| text.parse::<f64>().ok();
        let read = if let Some(rate) = text.strip_suffix("kb_s") {
            rate.parse()
                .ok()
                .filter(|rate| (1..=super::MOST_KB_S).contains(rate))
                .map(|rate| Reservation::Bandwidth(Rate::per_s(rate)))
        } else if let Some(text) = text.strip_prefix('w') {
            number(text).and_then(weight)
        } else if let Some(percent) = text.strip_suffix('%') {
            number(percent).map(|percent| percent / 100.0).filter(|part| is_share(*part)).map(share)
        } else {
            number(text).filter(|part| is_share(*part)).map(share)
        };
        read.ok_or_else(|| {
            format!(
                "invalid share `{text}`, expected a fraction above 0 and up to 1 (0.65 or 65%), a weight (w3), or whole \
                 KB/s (4000kb_s)"
            )
        })
    }

    fn ends(&self) -> Result<(), String> {
        match self.rest.chars().next() {
            None => Ok(()),
            Some(')') => Err("unmatched `)`".to_owned()),
            Some(other) => Err(format!("unexpected `{other}`")),
        }
    }

    fn word(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn takes(&mut self, expected: char) -> bool {
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::weighted;

    fn read(text: &str) -> Result<Plan, String> {
        Plan::read(Some(text), &weighted(&[1.0, 2.0, 1.0]), Rate::per_s(1000))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn groups_shares_weights_and_bandwidths() {
        let plan = read("X:50%(a:0.65,b),Y:400kb_s(Z:w2.5(c))").unwrap();
        let found: Vec<_> = plan.nodes.iter().map(|n| (n.name.as_str(), n.parent, n.reservation)).collect();
        assert_eq!(
            found,
            [
                ("X", None, Reservation::Fraction(500_000_000)),
                ("a", Some(0), Reservation::Fraction(650_000_000)),
                ("b", Some(0), Reservation::Weight(2_000_000)),
                ("Y", None, Reservation::Bandwidth(Rate::per_s(400))),
                ("Z", Some(3), Reservation::Weight(2_500_000)),
                ("c", Some(4), Reservation::EQUAL),
            ]
        );
        assert_eq!(plan.of_class, [1, 2, 5]);
        assert_eq!(plan.firm, Rate::per_s(400));
    }

    #[test]
    fn classes_that_are_not_named_are_below_the_root() {
        let plan = read("X:0.5(b)").unwrap();
        assert_eq!(plan.of_class, [2, 1, 3]);
        assert_eq!(plan.nodes[2].parent, None);
        let flat = Plan::read(None, &weighted(&[1.0, 3.0]), Rate::per_s(1)).unwrap();
        assert_eq!(flat.nodes[1].reservation, Reservation::Weight(3_000_000));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, says) in [
            ("", "character 1: missing name"),
            ("X:0.5(a", "missing `)` of X"),
            ("a)", "character 2: unmatched `)`"),
            ("a:0.5;b", "character 6: unexpected `;`"),
            ("a:1.5", "invalid share `1.5`"),
            ("a:w0", "invalid share `w0`"),
            ("a:", "invalid share ``"),
            ("a:0kb_s", "invalid share `0kb_s`"),
            ("X(d)", "`d` has no children and is no class; the classes are a, b, c"),
            ("X(a),X(b)", "duplicate name `X`"),
            ("a:0.5(b)", "`a` is a class and cannot have children"),
            ("X:0.9(a),b:0.2", "b: the fractions add up to more than 1"),
            ("X(a:0.9,b:0.2)", "b in X: the fractions add up to more than 1"),
            ("a:600kb_s,b:500kb_s", "b and the other bandwidths exceed root_kb_s"),
            ("X:0.5(a:5kb_s)", "a in X: a bandwidth needs a parent with a bandwidth"),
            ("X:9kb_s(a:5kb_s,b:5kb_s)", "b in X: the bandwidths add up to more"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("hds: tree") && error.contains(says), "{text}: {error}");
        }
        let deep = "X".to_owned() + &(0..40).map(|n| format!("(g{n}")).collect::<String>();
        assert!(read(&deep).unwrap_err().contains("at most 16"));
    }
}
