//! The pages of RUBBoS.

use serde_json::{Value, json};

use super::{look, write};
use crate::Error;
use crate::database::Connection;
use crate::http::{Application, Context, Form, Request};
use crate::load;

/// The bulletin board's pages.
pub struct BulletinBoard {
    facts: Vec<(String, String)>,
}

pub(crate) const PAGES: &[&str] = &[
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
/// Pages that change something, and are only answered to POST.
const CHANGES: &[&str] =
    &["RegisterUser", "StoreComment", "StoreModerateLog", "StoreStory", "AcceptStory", "RejectStory"];

impl BulletinBoard {
    /// The board in a database.
    ///
    /// # Errors
    /// The database holds another site, or none.
    pub fn open(connection: &mut dyn Connection) -> Result<Self, Error> {
        Ok(BulletinBoard { facts: load::loaded_facts(connection, "rubbos")? })
    }
}

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
    let name = form.text("nickname", 40)?;
    let sql = "SELECT id, password, access FROM board_users WHERE nickname = ?";
    let found = connection.run(sql, &[name.into()])?;
    let row = found.first().ok_or_else(|| Error::absent(format!("no user is called {name}")))?;
    if row.text(1)? != form.text("password", 40)? {
        return Err(Error::Refused(403, "the password is wrong".into()));
    }
    Ok((row.int(0)?, row.int(2)?))
}

impl Application for BulletinBoard {
    fn name(&self) -> &'static str {
        "rubbos"
    }

    fn facts(&self) -> &[(String, String)] {
        &self.facts
    }

    fn pages(&self) -> &'static [&'static str] {
        PAGES
    }

    fn answer(&self, page: &str, request: &Request, context: &mut Context<'_>) -> Result<Value, Error> {
        if CHANGES.contains(&page) && request.method != "POST" {
            return Err(Error::Refused(405, format!("{page} changes something: POST")));
        }
        let form = &request.form;
        let connection = &mut *context.connection;
        let mut answer = match page {
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
        }?;
        let mut whole = json!({"page": page});
        if let (Some(whole), Some(answer)) = (whole.as_object_mut(), answer.as_object_mut()) {
            whole.append(answer);
        }
        Ok(whole)
    }
}
