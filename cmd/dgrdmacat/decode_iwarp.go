package main

import (
	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
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
	m := d.rpc.Event(e)
	if m != nil && !d.o.filter.MatchRPC(m, e) {
		m = nil
	}
	switch chosen := d.o.filter.MatchEvent(e); {
	case !chosen && m == nil:
		return nil
	case !chosen:
		d.showRPC(m)
		d.counts.shown++
		return d.shown()
	}
	if d.o.shows() {
		d.lines.buf = d.printer.AppendEvent(d.lines.buf, e)
	}
	d.showRPC(m)
	if !frame {
		return d.flushMuch()
	}
	d.counts.shown++
	if d.o.write != "" {
		d.kept.unwritten++
	}
	return d.shown()
}

// showRPC shows a message of RPC-over-RDMA, if there is one.
func (d *decoder) showRPC(m *rpcrdma.Message) {
	if m != nil && d.o.shows() {
		d.lines.buf = d.printer.AppendRPC(d.lines.buf, m)
	}
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
