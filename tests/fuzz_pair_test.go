package tests

import (
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// FuzzPair has bytes decide about every datagram between two endpoints. The
// first ones choose sizes, the others are verdicts, taken in turn by the two
// directions; when they are used up, everything is delivered.
func FuzzPair(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3})
	f.Add([]byte{1, 200, 7, 9, 4, 4, 4, 4, 12, 12, 20, 20, 0x25, 0x35, 0x45, 0x55})
	f.Add([]byte{2, 14, 3, 1, 0, 0, 0xfe, 0xfe, 0xfe, 0xfe, 3, 0, 3, 0, 0xf5, 0xf5, 0, 0, 3})
	f.Add([]byte{3, 99, 2, 0x81, 0, 0, 0, 6, 6, 6, 6, 6, 6, 6, 0, 0, 7, 7, 7, 0xf6, 0xe6, 0xd6})
	f.Add([]byte{2, 1, 0, 0x43, 0, 3, 6, 5, 0xf6, 3, 0xff, 4, 0, 0x76, 0x75, 0x74, 3, 3, 0, 0x16})
	// A name told to one life, and answered late by the one before.
	f.Add([]byte("2 \x03k\x84\x00\xeb\xfe\x95\x95\x95FFFF\xfe\xfe\x03\x13\x03\x00\xf5"))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 400 {
			return
		}
		if fails := runPlan(t, pairPlan(script), ""); len(fails) > 0 {
			t.Errorf("%s%v", pairPlan(script), fails)
		}
	})
}

// pairPlan makes a schedule of a script.
func pairPlan(script []byte) *propertyPlan {
	var head [4]byte
	script = script[copy(head[:], script):]
	p := &propertyPlan{
		kind: "native", seed: uint64(head[0] >> 2), nodes: 2, mtu: []int{settings.LeastFrame, 64, 200, 1490}[head[0]%4], giveUp: 10 * time.Minute,
		duration: 50 * time.Millisecond, settle: 40 * time.Second, links: make(map[[2]int]simnet.Link),
	}
	for i := range 2 {
		p.each = append(p.each, propertyNodePlan{
			window: []int{0, 1, 2, 5}[int(head[2])>>(2*i)&3], first: frame.Seq(65500 + int(head[1])), repeatFirst: true, poison: true,
		})
	}
	for _, verdict := range script {
		if slices.Contains([]byte{3, 5, 6, 7}, verdict&7) { // see pairLink
			p.lost++
		}
	}
	p.links[[2]int{0, 1}] = pairLink(script, 0)
	p.links[[2]int{1, 0}] = pairLink(script, 1)
	size := 1 + int(head[1])
	for i := range 2 {
		p.flows = append(p.flows,
			propertyFlowPlan{from: i, to: 1 - i, start: 1, count: 4, depth: 1, segments: []int{20}, completion: true, reuse: true},
			propertyFlowPlan{from: i, to: 1 - i, start: 3, count: 3, depth: 3, segments: []int{size, 4, 7}, completion: true},
			propertyFlowPlan{from: i, to: 1 - i, start: 5, count: 2, depth: 2},
		)
	}
	for i := range 2 {
		at := time.Duration(1+int(head[3])&0x3f) * 300 * time.Microsecond
		if head[3]&(0x40<<i) != 0 {
			p.mayFail = true
			p.actions = append(p.actions, propertyAction{at: at, verb: verbRestart, from: i, crash: i == 0, gap: 100 * time.Microsecond})
		}
	}
	return p
}

// pairLink takes every second verdict of the script.
func pairLink(script []byte, side int) simnet.Link {
	return simnet.Link{
		Latency: 50*time.Microsecond + time.Duration(side),
		Script: func(i int, _ []byte) simnet.Verdict {
			if i = 2*i + side; i >= len(script) {
				return simnet.Deliver()
			}
			long := time.Duration(1<<(script[i]>>4)) * time.Millisecond
			switch script[i] & 7 {
			case 3:
				return simnet.Drop()
			case 4:
				return simnet.Duplicate()
			case 5:
				return simnet.Delay(long / 16)
			case 6:
				return simnet.Hold(long)
			case 7:
				return simnet.Verdict{Drop: true, Hold: long}
			}
			return simnet.Deliver()
		},
	}
}
