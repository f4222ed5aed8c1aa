package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/internal/emulator"
	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

// cell is flows on a slow path, which is measured as a whole.
type cell struct {
	name  string
	path  string // as emulator.Parse reads it
	flows []pathFlows
	bytes int // of each flow; 0: as many as it can in the time
	// later is when the rate changes, or the outage begins, of the time that the cell takes.
	later func(cfg *emulator.Config, long time.Duration)
}

// pathFlows are flows of one kind.
type pathFlows struct {
	kind  string
	count int
	after time.Duration // they begin that long after the first
	trip  time.Duration // their round trip; 0: that of the path
}

// rivals are the kinds that a flow alone is compared with.
var rivals = []string{kindOurs, "bbr", "cubic", kindQUIC}

func one(kind string) pathFlows { return pathFlows{kind: kind, count: 1} }

// cells are all of them.
var cells = slices.Concat(aloneCells(), firstCells(), besideCells(), changingCells(), linkCells())

// aloneCells are a flow of each kind on paths of different rates, round trips and losses.
func aloneCells() (all []cell) {
	for _, p := range []string{
		"10M-2ms-0", "10M-20ms-0", "10M-20ms-1", "10M-100ms-0", "10M-100ms-1", "10M-300ms-1", "10M-100ms-5",
		"100M-2ms-0", "100M-2ms-1", "100M-20ms-0", "100M-20ms-1", "100M-100ms-1", "100M-300ms-0", "100M-300ms-1", "500M-20ms-0",
	} {
		for _, kind := range rivals {
			all = append(all, cell{name: "alone-" + p + "-" + kind, path: pathOf(p), flows: []pathFlows{one(kind)}})
		}
	}
	for _, kind := range rivals {
		all = append(all, cell{name: "deep-" + kind, path: "rate=20M,rtt=40ms,queue=4bdp", flows: []pathFlows{one(kind)}})
	}
	return all
}

// firstCells are a connection that is made for a byte, and for a megabyte. Of each kind they take the time from the dial, of an address alone, until the sender knows that all
// was delivered: for a byte a round trip until the connection is there and data may leave, connect() of TCP, and another one for the byte.
func firstCells() (all []cell) {
	for _, what := range []struct {
		name  string
		bytes int
	}{{"setup", 1}, {"first", 1_000_000}} {
		for _, trip := range []string{"2ms", "20ms", "100ms", "300ms"} {
			for _, kind := range rivals {
				p := "10M-" + trip + "-0"
				all = append(all, cell{name: what.name + "-" + p + "-" + kind, path: pathOf(p), flows: []pathFlows{one(kind)}, bytes: what.bytes})
			}
		}
	}
	return all
}

// pathOf reads RATE-TRIP-LOSS, the loss in percent.
func pathOf(name string) string {
	p := strings.Split(name, "-")
	return fmt.Sprintf("rate=%s,rtt=%s,queue=1bdp,loss=%s%%", p[0], p[1], p[2])
}

// besideCells are flows that share 20 Mbit/s at 40 ms.
func besideCells() (all []cell) {
	const later = 8 * time.Second
	for _, c := range []struct {
		name  string
		flows []pathFlows
	}{
		{"beside-cubic", []pathFlows{one(kindOurs), one("cubic")}},
		{"beside-4cubic", []pathFlows{one(kindOurs), {kind: "cubic", count: 4}}},
		{"beside-bbr", []pathFlows{one(kindOurs), one("bbr")}},
		{"beside-quic", []pathFlows{one(kindOurs), one(kindQUIC)}},
		{"together-2", []pathFlows{{kind: kindOurs, count: 2}}},
		{"together-4", []pathFlows{{kind: kindOurs, count: 4}}},
		{"together-8", []pathFlows{{kind: kindOurs, count: 8}}},
		{"later", []pathFlows{one(kindOurs), {kind: kindOurs, count: 1, after: later}}},
		{"later-4", []pathFlows{{kind: kindOurs, count: 3}, {kind: kindOurs, count: 1, after: later}}},
		{"trips", []pathFlows{one(kindOurs), {kind: kindOurs, count: 1, trip: 200 * time.Millisecond}}},
		{"cubic-bbr", []pathFlows{one("cubic"), one("bbr")}},
		{"4cubic-bbr", []pathFlows{one("bbr"), {kind: "cubic", count: 4}}},
		{"cubic-cubic", []pathFlows{{kind: "cubic", count: 2}}},
		{"cubic-later", []pathFlows{one("cubic"), {kind: "cubic", count: 1, after: later}}},
		{"cubic-trips", []pathFlows{one("cubic"), {kind: "cubic", count: 1, trip: 200 * time.Millisecond}}},
	} {
		for _, queue := range []string{"0.25", "1", "4"} {
			all = append(all, cell{name: c.name + "-q" + queue, path: "rate=20M,rtt=40ms,queue=" + queue + "bdp", flows: c.flows})
		}
	}
	return append(all, cell{name: "together-16", path: "rate=10M,rtt=40ms,queue=1bdp", flows: []pathFlows{{kind: kindOurs, count: 16}}})
}

// changingCells are paths that change while a flow is there.
func changingCells() (all []cell) {
	for _, kind := range rivals {
		all = append(all,
			cell{name: "change-" + kind, path: "rate=100M,rtt=40ms", flows: []pathFlows{one(kind)}, later: func(cfg *emulator.Config, long time.Duration) {
				cfg.Bottleneck.Changes = append(cfg.Bottleneck.Changes, bottleneck.Change{At: long / 3, Rate: 10_000_000}, bottleneck.Change{At: long * 2 / 3, Rate: 100_000_000})
			}},
			cell{name: "outage-" + kind, path: "rate=20M,rtt=40ms", flows: []pathFlows{one(kind)}, later: func(cfg *emulator.Config, long time.Duration) {
				cfg.Bottleneck.Outages = append(cfg.Bottleneck.Outages, bottleneck.Outage{From: long / 2, For: 2 * time.Second})
			}})
	}
	return all
}

// linkCells are flows over links, with defaults.
func linkCells() (all []cell) {
	for _, p := range []string{"100M-100ms-0", "100M-100ms-1", "100M-300ms-0", "100M-300ms-1"} {
		for _, kind := range []string{kindCopy, kindSend} {
			all = append(all, cell{name: kind + "-" + p, path: pathOf(p), flows: []pathFlows{one(kind)}})
		}
	}
	return all
}

// tripAddress is the address of flows with another round trip than the path's.
var tripAddress = netip.AddrFrom4([4]byte{10, 77, 0, 11})
