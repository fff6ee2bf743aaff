//! Validity of a run: every rule applied to its facts.

use super::facts::Facts;
use super::rule::{RuleOutcome, Status, Validity};
use super::{lateness, load_rules, testbed_rules};

/// Applies every rule. Names CPU steal as the likely cause of a broken rule about time.
pub(crate) fn judge(facts: &Facts<'_>) -> Validity {
    let rules = vec![
        load_rules::exits(facts),
        load_rules::planned(facts),
        load_rules::percentiles(facts),
        load_rules::start(facts),
        load_rules::errors(facts),
        lateness::lateness(facts),
        lateness::span(facts),
        testbed_rules::loss(facts),
        testbed_rules::cached(facts),
        testbed_rules::network(facts),
        testbed_rules::sites(facts),
        testbed_rules::model(facts),
        testbed_rules::policy(facts),
        testbed_rules::whole(facts),
        testbed_rules::way(facts),
        testbed_rules::clock(facts),
        testbed_rules::state(facts),
        testbed_rules::controls(facts),
    ];
    let mut validity = Validity::of(rules);
    if validity.status == Status::Invalid && facts.cpu_steal >= weir_host::steal::DISTURBING_SHARE {
        validity.disturbed =
            validity.rules.iter().filter(|rule| rule.is_broken()).all(RuleOutcome::is_of_time);
        let told = format!("; CPU steal was {:.0} % of the wanted CPU time", facts.cpu_steal * 100.0);
        validity
            .rules
            .iter_mut()
            .filter(|rule| rule.is_broken() && rule.is_of_time())
            .for_each(|rule| rule.reason += &told);
    }
    validity
}
