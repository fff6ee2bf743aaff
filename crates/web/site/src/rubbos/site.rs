//! The pages of RUBBoS.

use serde_json::{Value, json};

use super::user::author;
use super::{look, write};
use crate::Error;
use crate::http::{Context, Form};

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
