package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/url"
)

// openCPIsIDs says what OpenCPI's software makes of the number of ids of an endpoint that was written as text in a dialect that it reads: it
// has another number, or was given its own.
func openCPIsIDs(u url.Endpoint, d url.Dialect, text string) string {
	if !d.ReadByOpenCPI() || u.Max == 0 || u.Max == url.OpenCPIIDs {
		return ""
	}
	if written, err := url.Parse(text); err == nil && written.Max != u.Max {
		return fmt.Sprintf("for OpenCPI the last number is %d and not %d: its software takes only the number of ids that it has itself, "+
			"which is %[1]d unless OCPI_MAX_MAILBOX is set there", written.Max, u.Max)
	}
	return fmt.Sprintf("OpenCPI takes %d as the last number only where OCPI_MAX_MAILBOX=%[1]d is set; otherwise it has to be %d", u.Max, url.OpenCPIIDs)
}

// sayOpenCPIsIDs says on standard error that peers of one of these kinds, where that is OpenCPI's software, fail with an endpoint of that id.
func sayOpenCPIsIDs(stderr io.Writer, id dgrdma.EndpointID, kinds ...string) {
	for _, kind := range kinds {
		if strings.HasPrefix(kind, "opencpi") && id >= url.OpenCPIIDs {
			fmt.Fprintf(stderr, "the id of this side is %d: OpenCPI's software, which peers of the kind %s are, takes 1 to %d and fails with others; --id gives it one of them\n",
				id, kind, url.OpenCPIIDs-1)
			return
		}
	}
}
