//! `sessions.parquet`: interactions of clients with a site.

use std::sync::Arc;

crate::record! {
    /// One interaction that a client asks a site for.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Interaction, InteractionColumns {
        /// Number within the run, from 0 in order of intended time.
        pub interaction: u64,
        /// The application class that asks.
        pub class: Arc<str>,
        /// The client within the class, from 0.
        pub client: u32,
        /// The client's session, from 0.
        pub session: u32,
        /// The interaction within the session, from 0.
        pub step: u32,
        /// What is asked for: the name of a state of the site's table of transitions.
        pub page: Arc<str>,
        /// Whether the client came here by going back.
        pub back: bool,
        /// Pause since the answer to the client's last interaction.
        pub think_ns: i64,
        /// When it is asked for.
        pub intended_ns: i64,
        /// Asked for before the measured interval begins.
        pub warmup: bool,
    }
}
