//! Each way in which copiers have lost data, and what must happen here instead. A test is named for
//! what went wrong elsewhere; classes that only concern one engine are tried with the engines,
//! those that need an injected error with the command.

mod ahead;
mod attributes;
mod changing;
mod deep;
mod identity;
mod kinds;
mod listener;
mod old;
mod page_cache;
mod room;
mod sparse;
mod swapped;
mod throttled;
mod workers;
