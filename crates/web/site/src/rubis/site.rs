//! The pages of RUBiS.

use serde_json::{Value, json};

use super::trade;
use super::user::known;
use crate::Error;
use crate::http::{Context, Form};

pub(super) const PAGES: &[&str] = &[
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
/// Pages that change something.
pub(super) const CHANGES: &[&str] =
    &["RegisterUser", "StoreBuyBow", "StoreBid", "StoreComment", "RegisterItem"];

/// Answers a page.
pub(super) fn answer(page: &str, form: &Form, context: &mut Context<'_>) -> Result<Value, Error> {
    match page {
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
        "RegisterUser" => trade::register_user(form, context),
        "RegisterItem" => trade::register_item(form, context),
        "StoreBid" => trade::bid(form, context),
        "StoreBuyBow" => trade::buy_now(form, context),
        "StoreComment" => trade::comment(form, context),
        other => Err(Error::absent(format!("no page {other}"))),
    }
}
