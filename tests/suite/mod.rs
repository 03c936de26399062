mod harness;

mod deliver;
mod filter;
mod golden;
mod in_place;
mod inputs;
mod layers;
mod limits;
mod man;
mod outputs;
mod peers;
mod pipe;
mod reports;
mod sample;
mod servers;
mod servers_down;
mod signals;
