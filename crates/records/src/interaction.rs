//! `sessions.parquet`: interactions of clients with a site.

use std::sync::Arc;

crate::record! {
    /// One interaction that a client asks a site for.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Interaction, InteractionColumns {
        /// Number within the run, from 0 in order of intended time.
        pub interaction: u64,
        /// The application class that sends the request.
        pub class: Arc<str>,
        /// The client within the class, from 0.
        pub client: u32,
        /// The client's session, from 0.
        pub session: u32,
        /// The interaction within the session, from 0.
        pub step: u32,
        /// The page: the name of a state of the site's transition table.
        pub page: Arc<str>,
        /// Whether the client came to the page by going back.
        pub back: bool,
        /// Think time since the answer to the client's last interaction.
        /// Unit: ns.
        pub think_ns: i64,
        /// When the workload wants the page to be asked for.
        /// Unit: ns.
        pub intended_ns: i64,
        /// Whether the request belongs to the warm-up, before the measured interval.
        pub warmup: bool,
    }
}
