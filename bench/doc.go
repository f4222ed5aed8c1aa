// Package bench is the load generator: it keeps transactions outstanding, counts and
// times them, and verifies what arrives.
//
// A transaction's bytes are a pattern of its slot, of how often that was used, and of
// the place in it, so that what is lost, doubled, torn or misplaced is noticed when the
// transaction completes.
package bench
