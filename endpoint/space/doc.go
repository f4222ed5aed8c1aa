// Package space shares out addresses: a [Block] of memory to those who take pieces of
// it, and of those pieces, in a [Table] for each peer, what the peer may write to.
package space
