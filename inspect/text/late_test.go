package text_test

import (
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/text"
)

// TestLateLines: a line that stands behind one of a later record says why, and no other does. Each file has records of its own.
func TestLateLines(t *testing.T) {
	conn := &iwarp.Connection{TCP: &tcp.Connection{}}
	closed := func(record int, late string) *iwarp.Event {
		at := tcp.Ref{Record: record}
		return &iwarp.Event{Kind: iwarp.Finished, Conn: conn, First: at, Last: at, Late: late}
	}
	for style, want := range map[text.Style]string{text.Line: "(FIN); late: it waited\n", text.Fields: "(FIN); late: it waited\n", text.JSON: `,"late":"it waited"}` + "\n"} {
		p := text.Printer{Style: style, File: "a"}
		for i, c := range []struct {
			e    *iwarp.Event
			file string
			late bool
		}{{closed(5, ""), "a", false}, {closed(7, "it waited"), "a", false}, {closed(6, "it waited"), "a", true}, {closed(8, ""), "a", false}, {closed(3, "it waited"), "b", false}} {
			p.File = c.file
			if got := string(p.AppendEvent(nil, c.e)); strings.Contains(got, want) != c.late || !c.late && strings.Contains(got, "late") {
				t.Errorf("style %d, %d: %s", style, i, got)
			}
		}
	}
}
