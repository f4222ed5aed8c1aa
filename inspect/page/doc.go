// Package page makes one HTML page of a report on a capture: findings, flows,
// and for the flows with most data pictures over time.
//
//	err := page.Write(w, report, page.Options{Title: "trace.pcap"})
//
// The page needs nothing else, no network and no scripts; it follows the
// reader's choice of light or dark, and the width of the window. What the capture
// says is escaped. Its size is bounded, like the report's.
package page
