// Package worlds is what random networks, peers and loads are drawn from: dice that follow
// from a seed, the kinds of peers with what a network may do to each, links, frames that
// somebody makes up, and bytes.
package worlds
