package main

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/rpcrdma"
)

// nfsFaults is how a server misbehaves on purpose.
type nfsFaults struct {
	kind    string
	every   int
	replies atomic.Int64
}

// nfsReply is a message of a server that has the reply to a call.
type nfsReply struct {
	rpcrdma.Header
	payload []byte
	cut     int // octets that are left out at the end
}

// nfsFaultKinds are what can be wrong with a reply. wrong changes it, and reports false if that cannot be wrong with it; times is how often it is sent.
var nfsFaultKinds = map[string]struct {
	about string
	times int
	wrong func(r *nfsReply) bool
}{
	"lost":   {"no reply comes", 0, func(*nfsReply) bool { return true }},
	"twice":  {"the reply comes twice", 2, func(*nfsReply) bool { return true }},
	"stray":  {"the reply is to another call", 1, (*nfsReply).stray},
	"end":    {"the connection ends without the reply", 1, func(*nfsReply) bool { return true }},
	"credit": {"the reply grants no credits", 1, func(r *nfsReply) bool { r.Credit = 0; return true }},
	"cut":    {"the header is cut in the middle", 1, func(r *nfsReply) bool { r.cut = len(r.payload) + 6; return true }},
	"long":   {"more is said to be in the client's memory than there is room for", 1, func(r *nfsReply) bool { return r.segment(func(s *rpcrdma.Segment) { s.Length += 1e6 }) }},
	"handle": {"data is said to be in other memory of the client", 1, func(r *nfsReply) bool { return r.segment(func(s *rpcrdma.Segment) { s.Handle++ }) }},
	"refuse": {"the call is refused, in version 1 by ERR_CHUNK", 1, (*nfsReply).refuse},
}

// none is the kind of fault of a server that has none.
const noFault = "none"

func nfsFaultNames() []string {
	return append([]string{noFault}, slices.Sorted(maps.Keys(nfsFaultKinds))...)
}

// nfsFaultTable is what help says of the kinds.
func nfsFaultTable() string {
	var b strings.Builder
	for _, name := range nfsFaultNames()[1:] {
		fmt.Fprintf(&b, "  %-7s %s\n", name, nfsFaultKinds[name].about)
	}
	return b.String()
}

func (f *nfsFaults) register(fs *flag.FlagSet) {
	f.kind = noFault
	fs.Var(&oneOf{&f.kind, nfsFaultNames()}, "fault", "misbehave over RDMA, for tests of clients: the `kind` of fault that replies have")
	fs.IntVar(&f.every, "every", 1, "one reply of `N` that can have the fault has it")
}

func (f *nfsFaults) check() error {
	switch {
	case !slices.Contains(nfsFaultNames(), f.kind):
		return badUsage("--fault %s: need one of %s", f.kind, strings.Join(nfsFaultNames(), ", "))
	case f.every < 1:
		return badUsage("--every %d: need 1 or more", f.every)
	case f.kind == noFault && f.every > 1:
		return badUsage("--every %d is of --fault: name one", f.every)
	}
	return nil
}

// instead returns what goes in place of a message, and false if the connection is to end.
func (f *nfsFaults) instead(message []byte) ([][]byte, bool) {
	var r nfsReply
	var err error
	kind := nfsFaultKinds[f.kind]
	if r.payload, err = rpcrdma.NewDecoder(rpcrdma.DefaultLimits()).Decode(message, &r.Header); err != nil || !r.isReply() || !kind.wrong(&r) {
		return [][]byte{message}, true
	}
	if f.replies.Add(1)%int64(f.every) != 0 {
		return [][]byte{message}, true
	}
	if f.kind == "end" {
		return nil, false
	}
	b := append(r.Header.Append(nil), r.payload...)
	all := make([][]byte, kind.times)
	for i := range all {
		all[i] = b[:len(b)-r.cut]
	}
	return all, true
}

// isReply reports whether the message has a whole reply: what opens a connection of version 2 is none, nor is a part.
func (r *nfsReply) isReply() bool {
	return r.Type <= rpcrdma.TypeNoMsg && !r.IsRefresh() && r.Flags&rpcrdma.FlagMore == 0 && (r.Version == rpcrdma.Version1 || r.Flags&rpcrdma.FlagResponse != 0)
}

// stray makes the reply that to another call, also within the message.
func (r *nfsReply) stray() bool {
	r.XID ^= 1 << 31
	if len(r.payload) > 0 {
		r.payload = slices.Clone(r.payload)
		r.payload[0] ^= 1 << 7
	}
	return true
}

// segment changes the first segment of memory that the client has offered for data, or for the whole reply. It reports whether there is one.
func (r *nfsReply) segment(change func(*rpcrdma.Segment)) bool {
	for _, chunk := range append(slices.Clone(r.Writes), r.Reply) {
		if len(chunk) > 0 {
			change(&chunk[0])
			return true
		}
	}
	return false
}

// refuse makes an ERROR of the reply.
func (r *nfsReply) refuse() bool {
	code := rpcrdma.CodeChunk
	if r.Version == rpcrdma.Version2 {
		code = rpcrdma.CodeSystem
	}
	r.Header = rpcrdma.Header{XID: r.XID, Version: r.Version, Credit: r.Credit, Type: rpcrdma.TypeError, Flags: r.Flags, Report: rpcrdma.Report{Code: code}}
	r.payload = nil
	return true
}
