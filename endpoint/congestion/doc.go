// Package congestion decides how many bytes a connection may have in flight, and when they leave. It has no goroutine, lock, clock or
// socket. It promises no compatibility: it is for the engine.
//
// [BBR] is for paths that others use too. It is version 3 of the algorithm (draft-ietf-ccwg-bbr), whose names and clauses its comments
// cite. Where it departs from the document, the comment says so.
package congestion
