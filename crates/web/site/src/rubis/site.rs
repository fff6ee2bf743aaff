//! The pages of RUBiS.

use serde_json::{Value, json};

use crate::Error;
use crate::database::Connection;
use crate::http::{Application, Context, Form, Request};
use crate::load;

/// The auction site's pages.
pub struct AuctionSite {
    facts: Vec<(String, String)>,
}

pub(crate) const PAGES: &[&str] = &[
    "Home",
    "Register",
    "RegisterUser",
    "Browse",
    "BrowseCategories",
    "SearchItemsInCategory",
    "BrowseRegions",
    "BrowseCategoriesInRegion",
    "SearchItemsInRegion",
    "ViewItem",
    "ViewUserInfo",
    "ViewBidHistory",
    "BuyNowAuth",
    "BuyNow",
    "StoreBuyBow",
    "PutBidAuth",
    "PutBid",
    "StoreBid",
    "PutCommentAuth",
    "PutComment",
    "StoreComment",
    "Sell",
    "SelectCategoryToSellItem",
    "SellItemForm",
    "RegisterItem",
    "AboutMeauthform",
    "AboutMe",
];
/// Pages that change something, and are only answered to POST.
const CHANGES: &[&str] = &["RegisterUser", "StoreBuyBow", "StoreBid", "StoreComment", "RegisterItem"];

impl AuctionSite {
    /// The site in a database.
    ///
    /// # Errors
    /// The database holds another site, or none.
    pub fn open(connection: &mut dyn Connection) -> Result<Self, Error> {
        Ok(AuctionSite { facts: load::loaded_facts(connection, "rubis")? })
    }
}

/// The user of a nickname and a password.
pub(super) fn known(connection: &mut dyn Connection, form: &Form) -> Result<i64, Error> {
    let name = form.text("nickname", 40)?;
    let found = connection.run("SELECT id, password FROM users WHERE nickname = ?", &[name.into()])?;
    let row = found.first().ok_or_else(|| Error::absent(format!("no user is called {name}")))?;
    if row.text(1)? != form.text("password", 40)? {
        return Err(Error::Refused(403, "the password is wrong".into()));
    }
    Ok(row.int(0)?)
}

impl Application for AuctionSite {
    fn name(&self) -> &'static str {
        "rubis"
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
        let mut answer = match page {
            // Forms and menus: the original's are files.
            "Home" | "Register" | "Browse" | "Sell" | "AboutMeauthform" => Ok(json!({})),
            "BuyNowAuth" | "PutBidAuth" | "PutCommentAuth" => Ok(json!({"item": form.id("item")?})),
            "SellItemForm" => Ok(json!({"category": form.id("category")?})),
            "BrowseCategories" => context.categories(),
            "SelectCategoryToSellItem" => {
                known(context.connection, form)?;
                context.categories()
            }
            "BrowseRegions" => context.regions(),
            "BrowseCategoriesInRegion" => context.categories_in_region(form),
            "SearchItemsInCategory" => context.items_in_category(form),
            "SearchItemsInRegion" => context.items_in_region(form),
            "ViewItem" => context.item(form),
            "ViewUserInfo" => context.user(form),
            "ViewBidHistory" => context.bid_history(form),
            "BuyNow" | "PutBid" => {
                known(context.connection, form)?;
                context.item(form)
            }
            "PutComment" => context.comment_form(form),
            "AboutMe" => context.about_me(form),
            "RegisterUser" => super::trade::register_user(form, context),
            "RegisterItem" => super::trade::register_item(form, context),
            "StoreBid" => super::trade::bid(form, context),
            "StoreBuyBow" => super::trade::buy_now(form, context),
            "StoreComment" => super::trade::comment(form, context),
            other => Err(Error::absent(format!("no page {other}"))),
        }?;
        let mut whole = json!({"page": page});
        if let (Some(whole), Some(answer)) = (whole.as_object_mut(), answer.as_object_mut()) {
            whole.append(answer);
        }
        Ok(whole)
    }
}
