package rpcrdma

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

var hostilities = flag.Int("hostile", 40, "how many random worlds TestHostilePeers runs")

// TestHostilePeers checks a machine against a peer that changes what it sends: headers with words changed, cut or doubled, messages twice or
// left out, parts that never end, credits ignored, memory withdrawn that is not its own. The machine does not panic, posts what fits, gives back all that
// it holds, and nothing is written or read outside of what it was lent.
func TestHostilePeers(t *testing.T) {
	t.Logf("worlds from seed %d", *from)
	ended, served, returned := 0, 0, 0
	for seed := *from; seed < *from+uint64(*hostilities); seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			h := &hostileWorld{world: world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0x686f7374))}}
			h.run()
			served += h.served
			returned += h.returned
			if h.pair.ended != "" {
				ended++
			}
		})
	}
	t.Logf("%d worlds: %d streams ended, %d Calls carried out, %d returned", *hostilities, ended, served, returned)
}

// A hostileWorld is one machine whose peer is a machine as well, but its messages are changed on the wire.
type hostileWorld struct {
	world
	victim   *fakeEnd
	attacker *fakeEnd
	returned int
}

// act is what runs at either end: it answers what comes, and looks at nothing but memory.
func (h *hostileWorld) act(e *fakeEnd, a *Action) {
	in := a.In
	switch a.Kind {
	case ActPlace:
		h.later(func() { e.m.Place(h.pair.now, in, nil); e.drive() })
	case ActDeliver:
		if e == h.victim {
			h.served++
		}
		if in.TooLong > 0 {
			h.later(func() { e.m.Fail(h.pair.now, in, Report{Code: CodeSystem}); e.drive() })
			return
		}
		if len(in.Message) < leastRPC || word(in.Message, 0) != in.XID || word(in.Message, wordSize) != msgCall {
			h.fatal("%s is given a Call without its header", e.name)
		}
		for i := range in.Items {
			if at := in.Items[i].At; at < firstItem || at > len(in.Message) || int(word(in.Message, at-wordSize)) != len(in.Items[i].Data) {
				h.fatal("%s is given an item of %d octets at %d of %d", e.name, len(in.Items[i].Data), at, len(in.Message))
			}
		}
		h.later(func() {
			m := h.draw(in.XID, msgReply, 24+h.size(6000)/wordSize*wordSize, h.sizes(6000))
			e.m.Reply(h.pair.now, in, Answer{Head: m.head, Items: m.items, Done: func() {
				scribble(m.head)
				for i := range m.items {
					scribble(m.items[i].Data)
				}
			}})
			e.drive()
		})
	case ActReturn:
		h.back(e, a.Call)
	case ActAnswered:
		if a.Done != nil {
			a.Done()
		}
	}
}

// back looks at a Call that has returned: the peer has no memory of it any more, and has written nothing but where it may.
func (h *hostileWorld) back(e *fakeEnd, c *Call) {
	for _, k := range h.calls {
		if &k.call != c {
			continue
		}
		k.returned++
		if k.returned > 1 {
			h.fatal("%s returns twice", k.name)
		}
		if e == h.victim {
			h.returned++
		}
		if c.Reply != nil {
			if len(c.Message) < leastRPC || word(c.Message, 0) != word(c.Head, 0) {
				h.fatal("%s has a Reply that is not its own", k.name)
			}
			e.pool.Put(c.Reply)
		}
		for i, n := range c.Placed {
			if n >= 0 && (i >= len(c.Into) || n > len(c.Into[i])) {
				h.fatal("%s: %d octets are said to be placed", k.name, n)
			}
		}
		k.kept = c.Kept
		for i, b := range k.lent {
			if k.kept && i > 0 {
				break
			}
			if e.lends(b) {
				h.fatal("%s has returned, and the peer may still use its memory", k.name)
			}
			scribble(b)
		}
	}
}

// change does something to what the attacker has put on the wire last.
func (h *hostileWorld) change() {
	wire := h.attacker.wire
	if len(wire) == 0 {
		return
	}
	at := h.rng.IntN(len(wire))
	k := &wire[at]
	switch what := h.rng.IntN(12); {
	case k.op == OpSend && what < 6:
		k.data = dice{h.rng}.mutated(bytes.Clone(k.data))
		if len(k.data) > 4096 {
			k.data = k.data[:4096]
		}
	case k.op == OpSend && what == 6:
		h.attacker.wire = append(wire, *k) // twice
	case k.op == OpSend && what == 7:
		h.attacker.wire = append(wire[:at:at], wire[at+1:]...) // never
	case k.op == OpSend && what == 8:
		k.invalidate = h.someHandle()
	case k.op == OpSend && what == 9 && len(k.data) >= PrefixSize2 && word(k.data, 4) == Version2:
		k.data[PrefixSize2-1] |= byte(FlagMore) // the end is never
	case k.op == OpSend && what == 10:
		for range h.rng.IntN(100) { // as if credits were nothing
			h.attacker.wire = append(h.attacker.wire, *k)
		}
	case k.op == OpWrite:
		k.to.Handle = h.someHandle()
		k.to.Offset += uint64(h.rng.IntN(9)) - 4
	}
}

// someHandle is one of the victim's, or none.
func (h *hostileWorld) someHandle() uint32 {
	least := uint32(0)
	for handle := range h.victim.memory {
		if least == 0 || handle < least {
			least = handle
		}
	}
	if least == 0 || h.rng.IntN(3) == 0 {
		return h.rng.Uint32()
	}
	return least
}

func (h *hostileWorld) run() {
	client, server := h.config()
	client.MaxCall, server.MaxCall = 100000, 100000
	client.GiveUp, server.GiveUp = time.Minute, time.Minute
	h.byXID = [2]map[uint32]*modelCall{{}, {}}
	h.pair = newFakePair(h.rng, client, server, h.fatal)
	at := h.rng.IntN(2)
	h.victim, h.attacker = h.pair.ends[at], h.pair.ends[1-at]
	for _, e := range h.pair.ends {
		e.program = h
		e.drive()
	}
	often := 1 + h.rng.IntN(200)
	issued := 0
	for steps := 0; h.pair.ended == "" && steps < 20000; steps++ {
		switch dice := h.rng.IntN(40); {
		case dice < 2 && issued < 200:
			issued++
			side := 0
			if h.rng.IntN(3) == 0 && server.Reverse > 0 && h.pair.ends[1].m.mayMakeCalls() {
				side = 1
			}
			h.issue(side)
		case dice < 6 && len(h.todo) > 0:
			h.runTodo()
		case dice == 6:
			h.cancel()
		default:
			if h.rng.IntN(often) == 0 {
				h.change()
			}
			if !h.pair.step() && issued == 200 && len(h.todo) == 0 && !h.pair.pass() {
				steps += 1000
			}
		}
		h.bounds()
		for _, e := range h.pair.ends {
			if e.closing && e.gone == len(e.posted) {
				h.pair.end("closed by the " + e.name)
			}
		}
	}
	h.pair.end("over")
	for _, at := range h.rng.Perm(2) {
		h.pair.ends[at].lose()
	}
	for len(h.todo) > 0 {
		h.runTodo()
	}
	h.victim.drive()
	if n := len(h.victim.pool.out); n > 0 {
		h.fatal("%s: %d buffers are not given back", h.victim.name, n)
	}
	for _, k := range h.calls {
		if k.returned != 1 {
			h.fatal("%s returns %d times", k.name, k.returned)
		}
		for i, b := range k.lent {
			if k.kept && i > 0 {
				break
			}
			for _, x := range b {
				if x != scribbled {
					h.fatal("%s: memory is written after it has returned", k.name)
				}
			}
		}
	}
}

// bounds checks that what the victim holds is bounded by its own configuration.
func (h *hostileWorld) bounds() {
	m := h.victim.m
	if n := len(m.rsp.calls); n > m.cfg.Window {
		h.fatal("%d Calls are in work, at most %d may be", n, m.cfg.Window)
	}
	if n := m.out.len(); n > m.mostOutgoing() {
		h.fatal("%d messages wait", n)
	}
	if n := len(m.rsp.free) + len(m.rsp.calls) + len(m.rsp.answered); n > m.cfg.Window+m.cfg.Sends+1 {
		h.fatal("%d Incomings are kept", n)
	}
}
