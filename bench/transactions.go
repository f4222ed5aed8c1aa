package bench

import (
	"context"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// transactions posts operations as transactions to peers, each of which has as many
// slots as the plan says.
type transactions struct {
	plan  Plan
	conns []*dgrdma.Conn
}

// transaction is what carries an operation.
type transaction struct {
	conn    *dgrdma.Conn
	t       dgrdma.Transaction
	segment [1]dgrdma.Segment
}

func (p *transactions) Post(op *Op) (complete bool, err error) {
	x, again := op.Cookie.(*transaction)
	if !again {
		x = &transaction{conn: p.conns[op.Slot/int(p.plan.Depth)], segment: [1]dgrdma.Segment{{Addr: p.plan.slotAt(op.Slot), Bytes: op.Bytes}}}
		x.t = dgrdma.Transaction{Segments: x.segment[:], Completion: dgrdma.Word(p.plan.completionAt(op.Slot), 0), Done: acknowledged, Cookie: op}
		op.Cookie = x
	}
	x.t.Completion = dgrdma.Word(x.t.Completion.Addr(), op.Round)
	return false, x.conn.Post(&x.t)
}

func acknowledged(t *dgrdma.Transaction, err error) { t.Cookie.(*Op).Done(err) }

// Wait has nothing to wait for: what is acknowledged has arrived.
func (p *transactions) Wait(context.Context) error { return nil }
