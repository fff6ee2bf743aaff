//! `sessions.parquet`: interactions of clients with a site.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int64Builder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use crate::columns::{Columns, NameBuilder, name_type};
use crate::table::Record;

/// One interaction that a client asks a site for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interaction {
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

/// Column builders of `sessions.parquet`, in schema order.
#[derive(Default)]
pub struct InteractionColumns {
    interaction: UInt64Builder,
    class: NameBuilder,
    client: UInt32Builder,
    session: UInt32Builder,
    step: UInt32Builder,
    page: NameBuilder,
    back: BooleanBuilder,
    think_ns: Int64Builder,
    intended_ns: Int64Builder,
    warmup: BooleanBuilder,
}

impl Record for Interaction {
    type Builders = InteractionColumns;

    fn schema() -> Schema {
        let field = |name, kind| Field::new(name, kind, false);
        Schema::new(vec![
            field("interaction", DataType::UInt64),
            field("class", name_type()),
            field("client", DataType::UInt32),
            field("session", DataType::UInt32),
            field("step", DataType::UInt32),
            field("page", name_type()),
            field("back", DataType::Boolean),
            field("think_ns", DataType::Int64),
            field("intended_ns", DataType::Int64),
            field("warmup", DataType::Boolean),
        ])
    }

    fn append(&self, to: &mut InteractionColumns) {
        to.interaction.append_value(self.interaction);
        to.class.append_value(&*self.class);
        to.client.append_value(self.client);
        to.session.append_value(self.session);
        to.step.append_value(self.step);
        to.page.append_value(&*self.page);
        to.back.append_value(self.back);
        to.think_ns.append_value(self.think_ns);
        to.intended_ns.append_value(self.intended_ns);
        to.warmup.append_value(self.warmup);
    }

    fn finish(columns: &mut InteractionColumns) -> Vec<ArrayRef> {
        vec![
            Arc::new(columns.interaction.finish()),
            Arc::new(columns.class.finish()),
            Arc::new(columns.client.finish()),
            Arc::new(columns.session.finish()),
            Arc::new(columns.step.finish()),
            Arc::new(columns.page.finish()),
            Arc::new(columns.back.finish()),
            Arc::new(columns.think_ns.finish()),
            Arc::new(columns.intended_ns.finish()),
            Arc::new(columns.warmup.finish()),
        ]
    }

    fn from_batch(batch: &RecordBatch, rows: &mut Vec<Self>) -> Result<(), String> {
        let columns = Columns::new(batch);
        let interaction = columns.u64("interaction")?;
        let mut class = columns.names("class")?;
        let client = columns.u32("client")?;
        let session = columns.u32("session")?;
        let step = columns.u32("step")?;
        let mut page = columns.names("page")?;
        let back = columns.bools("back")?;
        let think_ns = columns.i64("think_ns")?;
        let intended_ns = columns.i64("intended_ns")?;
        let warmup = columns.bools("warmup")?;
        for row in 0..batch.num_rows() {
            rows.push(Interaction {
                interaction: interaction.required(row)?,
                class: class.required(row)?,
                client: client.required(row)?,
                session: session.required(row)?,
                step: step.required(row)?,
                page: page.required(row)?,
                back: back.required(row)?,
                think_ns: think_ns.required(row)?,
                intended_ns: intended_ns.required(row)?,
                warmup: warmup.required(row)?,
            });
        }
        Ok(())
    }
}
