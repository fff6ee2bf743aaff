//! The pages of RUBBoS.

use serde_json::{Value, json};

use super::{look, write};
use crate::database::Connection;
use crate::http::{Context, Form};
use crate::{Error, account};

pub(super) const PAGES: &[&str] = &[
    "StoriesOfTheDay",
    "Register",
    "RegisterUser",
    "Browse",
    "BrowseCategories",
    "BrowseStoriesInCategory",
    "OlderStories",
    "ViewStory",
    "PostComment",
    "StoreComment",
    "ViewComment",
    "ModerateComment",
    "StoreModerateLog",
    "SubmitStory",
    "StoreStory",
    "Search",
    "SearchInStories",
    "SearchInComments",
    "SearchInUsers",
    "Authorlogin",
    "Authortask",
    "ReviewStories",
    "AcceptStory",
    "RejectStory",
];
/// Pages that change something.
pub(super) const CHANGES: &[&str] =
    &["RegisterUser", "StoreComment", "StoreModerateLog", "StoreStory", "AcceptStory", "RejectStory"];

/// The user of a nickname and a password.
pub(super) fn known(connection: &mut dyn Connection, form: &Form) -> Result<i64, Error> {
    Ok(known_with_access(connection, form)?.0)
}

/// The author of a nickname and a password.
pub(super) fn author(connection: &mut dyn Connection, form: &Form) -> Result<i64, Error> {
    match known_with_access(connection, form)? {
        (id, 1) => Ok(id),
        _ => Err(Error::Refused(403, "only authors may do this".into())),
    }
}

fn known_with_access(connection: &mut dyn Connection, form: &Form) -> Result<(i64, i64), Error> {
    let row = account::known(connection, form, "board_users", "id, access")?;
    Ok((row.int(0)?, row.int(1)?))
}

/// Answers a page.
pub(super) fn answer(page: &str, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
    let connection = &mut *context.connection;
    match page {
        // Forms and menus: the original's are files.
        "Register" | "Browse" | "SubmitStory" | "Search" | "Authorlogin" => Ok(json!({})),
        "StoriesOfTheDay" => look::of_the_day(connection),
        "BrowseCategories" => look::categories(connection),
        "BrowseStoriesInCategory" => look::in_category(connection, form),
        "OlderStories" => look::older(connection, form),
        "ViewStory" => look::story(connection, form),
        "ViewComment" | "PostComment" | "ModerateComment" => look::comment(connection, form),
        "SearchInStories" => look::search_stories(connection, form),
        "SearchInComments" => look::search_comments(connection, form),
        "SearchInUsers" => look::search_users(connection, form),
        "Authortask" => author(connection, form).map(|id| json!({"author": id})),
        "ReviewStories" => author(connection, form).and_then(|_| look::submissions(connection)),
        "RegisterUser" => write::register(form, context),
        "StoreComment" => write::comment(form, context),
        "StoreModerateLog" => write::moderate(form, context),
        "StoreStory" => write::submit(form, context),
        "AcceptStory" => write::decide(form, context, true),
        "RejectStory" => write::decide(form, context, false),
        other => Err(Error::absent(format!("no page {other}"))),
    }
}
