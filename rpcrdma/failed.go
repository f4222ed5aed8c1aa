package rpcrdma

import (
	"fmt"
	"time"
)

// PeerError is what an ERROR of the peer says about a Call.
type PeerError struct {
	Version uint32
	Report  Report
}

func (e *PeerError) Error() string {
	s := "the peer refused the Call: " + e.Report.Code.Name(e.Version)
	switch {
	case e.Report.Code == CodeVers:
		return fmt.Sprintf("%s (it speaks versions %d to %d)", s, e.Report.Low, e.Report.High)
	case e.Report.Needed > 0:
		return fmt.Sprintf("%s (the Reply needs %d octets)", s, e.Report.Needed)
	}
	return s
}

// Repeatable reports whether the Call may be made again, with a new XID: it was not carried out, and the machine will
// give the peer what it takes (RPC2-112).
func (e *PeerError) Repeatable() bool {
	if e.Version != Version2 {
		return false
	}
	c := e.Report.Code
	return c == CodeReadChunks || c == CodeWriteChunks || c == CodeSegments
}

// failed takes an ERROR of the peer. One that is of no Call is dropped (RPC2-111).
func (r *requester) failed(m *Machine, now time.Time, h *Header, invalidated bool, stag uint32) {
	o := r.find(h.XID)
	if invalidated && (o == nil || !o.lends(stag, m.version)) {
		m.close(ErrProtocol)
		return
	}
	if o == nil {
		r.unmatched++
		return
	}
	e := &PeerError{h.Version, h.Report}
	m.end(o, e)
	if h.Version != Version2 || m.version != Version2 {
		return
	}
	switch h.Report.Code {
	case CodeVers, CodeInvalHType:
		// All that this side sends of RPC is of this version and type (RPC2-083).
		m.close(e)
	case CodeReadChunks:
		r.limits.reads = min(r.limits.reads, int(h.Report.Max))
	case CodeWriteChunks:
		r.limits.writes = min(r.limits.writes, int(h.Report.Max))
	case CodeSegments:
		r.limits.segments = min(r.limits.segments, int(h.Report.Max))
	}
}
