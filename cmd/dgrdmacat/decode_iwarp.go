package main

import (
	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
)

// showEvent shows what happened on a connection of iWARP.
func (d *decoder) showEvent(e *iwarp.Event) error {
	frame := e.Kind == iwarp.SetUp || e.Kind == iwarp.Frame
	if frame {
		d.counts.Packets++
		d.counts.fpdus++
	}
	if e.Fault != nil || e.Wrong != nil || e.CRC == iwarp.Bad {
		d.counts.malformed++
	}
	if e.Absent > 0 {
		d.counts.Cut++
	}
	if !d.o.filter.MatchEvent(e) {
		return nil
	}
	if d.o.shows() {
		d.lines.buf = d.printer.AppendEvent(d.lines.buf, e)
	}
	if !frame {
		return d.flushMuch()
	}
	d.counts.shown++
	if d.o.write != "" {
		d.kept.unwritten++
	}
	return d.shown()
}

// passed writes a segment of a connection of iWARP to the file, if there is to be one.
func (d *decoder) passed(r *capture.Record, c *tcp.Connection) error {
	if !d.o.filter.MatchConnection(c) {
		return nil
	}
	if err := d.keep(r); err != nil {
		return err
	}
	return d.flushMuch()
}
