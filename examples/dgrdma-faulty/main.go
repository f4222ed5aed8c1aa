// Faulty is a server of RPC over RDMA, version 1, that misbehaves on purpose: for tests of clients, in Go or of others, without
// hardware. It answers procedure 0 of every program, and procedure 1 with data: in memory that the client offers for it, or in the message.
//
//	dgrdma-faulty -fault lost -every 3    listens at port 7492 of this machine's loopback interface; ^C ends it
//	dgrdma-faulty -h                      says which faults there are
//
// A test in Go starts it by the function serve. It is built of packages verbs and rpcrdma alone, as a server of a test's own would be: receives that
// are posted before the connection is there, a Decoder for what comes, and Header.Append for what goes.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/verbs"
)

const (
	// window is how many calls a client may have at once, and size the length of receives and of the longest Send.
	window = 32
	size   = 4096
	// dataLength is the length of the data that procedure 1 returns.
	dataLength = 1000
)

// answer is what is sent for a call. Faults change it.
type answer struct {
	header  rpcrdma.Header
	message []byte
	times   int  // how often it is sent
	cut     int  // how many octets of it are left out at the end
	end     bool // the connection ends in its place
}

// faults are what can be wrong with every n-th answer.
var faults = map[string]struct {
	does  func(a *answer)
	about string
}{
	"none":   {func(*answer) {}, "nothing is wrong"},
	"lost":   {func(a *answer) { a.times = 0 }, "no reply comes"},
	"twice":  {func(a *answer) { a.times = 2 }, "the reply comes twice"},
	"stray":  {func(a *answer) { a.header.XID ^= 1 << 31; a.message[0] ^= 1 << 7 }, "the reply is to another call"},
	"end":    {func(a *answer) { a.end = true }, "the connection ends"},
	"credit": {func(a *answer) { a.header.Credit = 0 }, "the reply grants no credits"},
	"cut":    {func(a *answer) { a.cut = len(a.message) + 6 }, "the header is cut in the middle"},
	"long":   {func(a *answer) { a.chunk(func(s *rpcrdma.Segment) { s.Length += dataLength * 1000 }) }, "more data is said to be placed than there is room for"},
	"handle": {func(a *answer) { a.chunk(func(s *rpcrdma.Segment) { s.Handle++ }) }, "data is said to be in other memory"},
	"inline": {func(a *answer) { a.inline() }, "data is in the message although there was memory for it"},
	"refuse": {func(a *answer) {
		a.header = rpcrdma.Header{XID: a.header.XID, Version: rpcrdma.Version1, Credit: window, Type: rpcrdma.TypeError, Report: rpcrdma.Report{Code: rpcrdma.CodeChunk}}
		a.message = nil
	}, "the call is refused by ERR_CHUNK"},
}

// chunk changes the first segment of the data's chunk, if there is one.
func (a *answer) chunk(change func(*rpcrdma.Segment)) {
	if len(a.header.Writes) > 0 && len(a.header.Writes[0]) > 0 {
		change(&a.header.Writes[0][0])
	}
}

// inline takes the data back out of its chunk.
func (a *answer) inline() {
	a.chunk(func(s *rpcrdma.Segment) {
		if s.Length > 0 {
			s.Length = 0
			a.message = append(a.message, data()...)
		}
	})
}

// data is what procedure 1 returns. Its length is a multiple of four, and so needs no padding.
func data() []byte {
	b := make([]byte, dataLength)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	set := flag.NewFlagSet("dgrdma-faulty", flag.ExitOnError)
	at := set.String("at", "tcp:127.0.0.1", "serve at this address of the machine")
	port := set.String("port", "7492", "serve at this port; 0: any")
	fault := set.String("fault", "none", "what is wrong: see below")
	every := set.Int("every", 1, "one answer of so many has the fault")
	set.BoolFunc("h", "print this", func(string) error {
		set.SetOutput(os.Stdout)
		set.Usage()
		os.Exit(0)
		return nil
	})
	set.Usage = func() {
		fmt.Fprintln(set.Output(), "usage: dgrdma-faulty [flags]")
		set.PrintDefaults()
		fmt.Fprintln(set.Output(), "faults:")
		for _, name := range slices.Sorted(maps.Keys(faults)) {
			fmt.Fprintf(set.Output(), "  %-8s %s\n", name, faults[name].about)
		}
	}
	set.Parse(os.Args[1:])
	err := errors.New("takes no arguments")
	if set.NArg() == 0 {
		err = serve(ctx, *at, *port, *fault, *every, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dgrdma-faulty:", err)
		os.Exit(1)
	}
}

// serve serves until ctx ends. Every n-th answer of a connection has the fault.
func serve(ctx context.Context, at, port, fault string, every int, out io.Writer) error {
	wrong, ok := faults[fault]
	if !ok || every < 1 {
		return fmt.Errorf("no fault %q with each %d. answer: %s", fault, every, strings.Join(slices.Sorted(maps.Keys(faults)), ", "))
	}
	host, err := verbs.Open(at)
	if err != nil {
		return err
	}
	defer host.Close()
	l, err := host.Listen(port)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "serving on rdma:%v\n", l.Addr())
	for {
		request, err := l.Accept(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			c := &conn{received: verbs.NewCompletionQueue(), every: every, wrong: wrong.does}
			o := &verbs.Options{Received: c.received, Receives: window, Private: (&rpcrdma.Private{SendSize: size, ReceiveSize: size}).Append(nil)}
			for range window {
				c.receives = append(c.receives, make([]byte, size))
				o.Posted = append(o.Posted, verbs.Receive{Data: c.receives[len(c.receives)-1]})
			}
			if c.qp, err = request.Accept(ctx, o); err == nil {
				c.serve(ctx)
				c.qp.Abort()
			}
		}()
	}
}

// conn is one connection.
type conn struct {
	qp       *verbs.QueuePair
	received *verbs.CompletionQueue
	receives [][]byte // in order
	decoder  *rpcrdma.Decoder
	calls    int
	every    int
	wrong    func(*answer)
}

// serve answers calls until the connection ends.
func (c *conn) serve(ctx context.Context) {
	c.decoder = rpcrdma.NewDecoder(rpcrdma.DefaultLimits())
	c.decoder.Lowest, c.decoder.Highest = rpcrdma.Version1, rpcrdma.Version1
	var done [1]verbs.Completion
	for {
		if n, err := c.received.Wait(ctx, done[:]); err != nil || n == 0 || done[0].Err != nil {
			return
		}
		b := c.receives[0]
		var h rpcrdma.Header
		call, err := c.decoder.Decode(b[:done[0].Length], &h)
		if err == nil && len(call) >= 24 {
			if !c.answer(&h, call) {
				return
			}
		} else if h, is := refusal(err); is && c.qp.Post(&verbs.Work{Op: verbs.OpSend, Data: h.Append(nil)}) != nil {
			return
		}
		// The receive is posted again when nothing of the message is needed any more.
		c.receives = append(c.receives[1:], b)
		if c.qp.PostReceive(verbs.Receive{Data: b}) != nil {
			return
		}
	}
}

// refusal is the ERROR that the specification wants: ERR_VERS for a client that prefers version 2, as an example, which then goes on in version 1.
func refusal(err error) (h rpcrdma.Header, is bool) {
	var fault *rpcrdma.Fault
	if errors.As(err, &fault) {
		return fault.Answer(window)
	}
	return h, false
}

// answer answers a call. It reports whether the connection goes on.
func (c *conn) answer(h *rpcrdma.Header, call []byte) bool {
	a := &answer{times: 1, header: rpcrdma.Header{XID: h.XID, Version: rpcrdma.Version1, Credit: window}}
	for _, w := range h.Writes {
		back := slices.Clone(w)
		for i := range back {
			back[i].Length = 0 // not used
		}
		a.header.Writes = append(a.header.Writes, back)
	}
	a.message = binary.BigEndian.AppendUint32(nil, h.XID)
	for _, word := range []uint32{1, 0, 0, 0, 0} { // a Reply, accepted, AUTH_NONE, SUCCESS
		a.message = binary.BigEndian.AppendUint32(a.message, word)
	}
	if binary.BigEndian.Uint32(call[20:]) == 1 {
		a.message = binary.BigEndian.AppendUint32(a.message, dataLength)
		if !c.place(a, h) {
			a.message = append(a.message, data()...)
		}
	}
	if c.calls++; c.calls%c.every == 0 {
		c.wrong(a)
	}
	if a.end {
		return false
	}
	for range a.times {
		b := append(a.header.Append(nil), a.message...)
		if c.qp.Post(&verbs.Work{Op: verbs.OpSend, Data: b[:len(b)-a.cut]}) != nil {
			return false
		}
	}
	return true
}

// place writes the data into memory of the client, if its first segment has room.
func (c *conn) place(a *answer, h *rpcrdma.Header) bool {
	if len(h.Writes) == 0 || len(h.Writes[0]) == 0 || h.Writes[0][0].Length < dataLength {
		return false
	}
	to := h.Writes[0][0]
	a.header.Writes[0][0].Length = dataLength
	return c.qp.Post(&verbs.Work{Op: verbs.OpWrite, STag: to.Handle, TO: to.Offset, Data: data()}) == nil
}
