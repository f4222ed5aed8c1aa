package iwarp

import (
	"bytes"

	"github.com/dgrdma/dgrdma/capture"
)

// early are the latest segments of a connection that is not known for one of iWARP yet, for Options.Passed.
type early struct {
	records []capture.Record
	size    int
}

// earlySize is what a record takes that is remembered, about.
func earlySize(r *capture.Record) int { return len(r.Data) + 128 }

// pass hands the record on that is looked at, or remembers it until the connection is known.
func (d *Decoder) pass(c *Connection) {
	if d.options.Passed == nil || d.err != nil || c.ignored {
		return
	}
	if c.Number > 0 {
		d.err = d.options.Passed(d.record, c.TCP)
		return
	}
	r := *d.record
	r.Data = bytes.Clone(r.Data)
	e := &c.early
	before := e.size
	e.records = append(e.records, r)
	for e.size += earlySize(&r); len(e.records) > MostEarly || e.size > MostEarlyBytes; e.records = e.records[1:] {
		e.size -= earlySize(&e.records[0])
		e.records[0] = capture.Record{}
	}
	d.hold(c, e.size-before)
}

// passEarly hands on what was remembered.
func (d *Decoder) passEarly(c *Connection) {
	for i := range c.early.records {
		if d.err == nil {
			d.err = d.options.Passed(&c.early.records[i], c.TCP)
		}
	}
	d.forgetEarly(c)
}

func (d *Decoder) forgetEarly(c *Connection) {
	d.hold(c, -c.early.size)
	c.early = early{}
}
