package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/metrics"
)

// topChange is the difference of counters between two views.
type topChange struct {
	before, now map[string]uint64
	seconds     float64 // 0: there is no earlier view of this program
}

// counted returns by how much the counters grew together. A counter that is smaller than
// before belongs to something new by the same name.
func (c topChange) counted(names ...string) (n uint64) {
	for _, name := range names {
		now, before := c.now[name], c.before[name]
		if before > now {
			before = 0
		}
		n += now - before
	}
	return n
}

// rate returns counted per second.
func (c topChange) rate(names ...string) float64 {
	if c.seconds == 0 {
		return 0
	}
	return float64(c.counted(names...)) / c.seconds
}

// perSecond shows a rate.
func (c topChange) perSecond(names ...string) string {
	if c.seconds == 0 {
		return "-"
	}
	return shortNumber(c.rate(names...))
}

func (c topChange) megabytes(names ...string) string {
	if c.seconds == 0 {
		return "-"
	}
	return fewDecimals(c.rate(names...) / 1e6)
}

// again returns the share of frames with data that were sent again, in percent.
func (c topChange) again() float64 {
	frames := c.counted("frames_sent")
	frames -= min(c.counted("acks_alone"), frames)
	if frames == 0 {
		return 0
	}
	return 100 * float64(c.counted("retransmits_fast", "retransmits_timed")) / float64(frames)
}

// summedUp adds up a map of counters under one name.
func summedUp(m map[string]uint64) map[string]uint64 {
	var n uint64
	for _, k := range m {
		n += k
	}
	return map[string]uint64{"": n}
}

// shortNumber is a number in five letters at most.
func shortNumber(v float64) string {
	for _, unit := range []string{"", "k", "M", "G"} {
		switch {
		case v < 9.995 && unit != "":
			return fmt.Sprintf("%.2f%s", v, unit)
		case v < 99.95 && unit != "":
			return fmt.Sprintf("%.1f%s", v, unit)
		case v < 999.5:
			return fmt.Sprintf("%.0f%s", v, unit)
		}
		v /= 1000
	}
	return fmt.Sprintf("%.0fT", v)
}

// fewDecimals is a number with as many as mean something.
func fewDecimals(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.0995:
		return fmt.Sprintf("%.2f", v)
	case v < 99.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// briefTime is a time in few letters.
func briefTime(seconds float64) string {
	switch {
	case seconds < 0.0009995:
		return fmt.Sprintf("%.0fus", seconds*1e6)
	case seconds < 0.00995:
		return fmt.Sprintf("%.1fms", seconds*1e3)
	case seconds < 0.9995:
		return fmt.Sprintf("%.0fms", seconds*1e3)
	case seconds < 99.95:
		return fmt.Sprintf("%.1fs", seconds)
	case seconds < 86400:
		return (time.Duration(seconds) * time.Second).String()
	}
	return fmt.Sprintf("%.0fd", seconds/86400)
}

// secondsBetween says how much time passed from one view to the next; 0 if they are not
// of the same program.
func secondsBetween(before, now *metrics.View) float64 {
	if before == nil || before.PID != now.PID || now.Elapsed <= before.Elapsed {
		return 0
	}
	return now.Elapsed - before.Elapsed
}

// topTables makes the tables of a view, with rates since another one.
func topTables(before, now *metrics.View) []topTable {
	seconds := secondsBetween(before, now)
	old := make(map[string]*metrics.Endpoint)
	if seconds > 0 {
		for i := range before.Endpoints {
			old[before.Endpoints[i].Name] = &before.Endpoints[i]
		}
	}
	endpoints := topTable{columns: endpointColumns}
	peers := topTable{columns: peerColumns}
	congestion := topTable{columns: congestionColumns}
	links := topTable{columns: linkColumns}
	for i := range now.Endpoints {
		e := &now.Endpoints[i]
		was := old[e.Name]
		if was == nil {
			was = new(metrics.Endpoint)
		}
		endpoints.rows = append(endpoints.rows, endpointRow(was, e, seconds))
		each := peerRows(was, e, seconds)
		peers.rows = append(peers.rows, each...)
		congestion.rows = append(congestion.rows, congestionRows(e, each)...)
		if e.Host != nil {
			links.rows = append(links.rows, linkRows(was.Host, e, seconds)...)
		}
	}
	all := []topTable{endpoints, peers, congestion, links, rdmaTable(before, now, seconds), rpcTable(before, now, seconds)}
	for _, t := range all {
		slices.SortStableFunc(t.rows, func(a, b topRow) int {
			return cmp.Or(cmp.Compare(b.traffic, a.traffic), cmp.Compare(a.cells[0], b.cells[0]))
		})
	}
	if len(now.Endpoints) < 2 {
		all[1], all[2] = peers.without("ENDPOINT"), congestion.without("ENDPOINT")
	}
	return all
}

var endpointColumns = []topColumn{
	{title: "ENDPOINT", left: true}, {title: "STATE", left: true, rank: 2}, {title: "PEERS", rank: 5},
	{title: "OUT MB/s", rank: 1}, {title: "IN MB/s", rank: 1}, {title: "OUT FR/s", rank: 4}, {title: "IN FR/s", rank: 4},
	{title: "OUT TX/s", rank: 3}, {title: "IN TX/s", rank: 3}, {title: "AGAIN %", rank: 2}, {title: "DROPS/s", rank: 6}, {title: "REFUSED/s", rank: 7},
	{title: "FULL", rank: 8}, {title: "DAMAGED/s", rank: 9},
}

// endpointFull are counters of bounds that were reached, beside what is refused; those of a host of links are
// all such. They are shown since the beginning, for a bound is reached seldom.
var endpointFull = []string{"strangers_unanswered", "challenges_full", "peers_dismissed", "open_evicted", "queue_full"}

func timesFull(e *metrics.Endpoint) uint64 {
	n := topChange{now: e.Counters}.counted(endpointFull...)
	if e.Host != nil {
		n += summedUp(e.Host.Full)[""]
	}
	return n
}

func endpointRow(was, e *metrics.Endpoint, seconds float64) topRow {
	c := topChange{was.Counters, e.Counters, seconds}
	wire := topChange{was.Transport, e.Transport, seconds}
	refused := topChange{summedUp(was.Refused), summedUp(e.Refused), seconds}
	drops := []string{"send_drops", "kernel_drops", "truncated"}
	r := topRow{traffic: c.rate("bytes_sent", "bytes_received"), style: c.alarm()}
	damaged := topChange{was.Refused, e.Refused, seconds}
	if (wire.counted(drops...) > 0 || damaged.counted(wrongChecksum) > 0) && seconds > 0 {
		r.style = styleWarn
	}
	state := "up"
	if e.Error != "" {
		state, r.style = "failed", styleBad
	}
	r.cells = []string{
		e.Name, state, fmt.Sprint(len(e.Peers)),
		c.megabytes("bytes_sent"), c.megabytes("bytes_received"), c.perSecond("frames_sent"), c.perSecond("frames_received"),
		c.perSecond("transactions_done"), c.perSecond("completions"), c.percent(), wire.perSecond(drops...), refused.perSecond(""),
		shortNumber(float64(timesFull(e))), damaged.perSecond(wrongChecksum),
	}
	return r
}

// wrongChecksum is the reason for which frames are refused that were changed on the way.
var wrongChecksum = dgrdma.RefusedChecksum.String()

// percent shows again.
func (c topChange) percent() string {
	if c.seconds == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", c.again())
}

// alarm is how a row looks by its retransmissions: more than one in a hundred is
// worth a look. Arbitrary.
func (c topChange) alarm() topStyle {
	if c.seconds > 0 && c.again() > 1 {
		return styleWarn
	}
	return stylePlain
}

var peerColumns = []topColumn{
	{title: "PEER", left: true}, {title: "ENDPOINT", left: true, rank: 12}, {title: "STATE", left: true, rank: 2},
	{title: "OUT MB/s", rank: 1}, {title: "IN MB/s", rank: 1}, {title: "OUT FR/s", rank: 9}, {title: "IN FR/s", rank: 9},
	{title: "OUT TX/s", rank: 6}, {title: "IN TX/s", rank: 6}, {title: "AGAIN %", rank: 3}, {title: "FLIGHT", rank: 4}, {title: "QUEUED", rank: 8},
	{title: "RTT", rank: 5}, {title: "HEARD", rank: 7}, {title: "DUP/s", rank: 10}, {title: "REFUSED/s", rank: 11}, {title: "DAMAGED/s", rank: 13},
}

func peerRows(was, e *metrics.Endpoint, seconds float64) (rows []topRow) {
	old := make(map[string]*metrics.Peer, len(was.Peers))
	for i := range was.Peers {
		old[was.Peers[i].Name] = &was.Peers[i]
	}
	for i := range e.Peers {
		p := &e.Peers[i]
		before := old[p.Name]
		if before == nil {
			before = new(metrics.Peer)
		}
		c := topChange{before.Counters, p.Counters, seconds}
		refused := topChange{summedUp(before.Refused), summedUp(p.Refused), seconds}
		damaged := topChange{before.Refused, p.Refused, seconds}
		r := topRow{traffic: c.rate("bytes_sent", "bytes_received"), style: c.alarm()}
		if damaged.counted(wrongChecksum) > 0 && seconds > 0 {
			r.style = styleWarn
		}
		if p.State == metrics.StateDown {
			r.style = styleBad
		}
		rtt, heard := "-", "never"
		if p.RTT > 0 {
			rtt = briefTime(p.RTT)
		}
		if p.Silent != nil {
			heard = briefTime(*p.Silent)
		}
		r.cells = []string{
			p.Name, e.Name, p.State,
			c.megabytes("bytes_sent"), c.megabytes("bytes_received"), c.perSecond("frames_sent"), c.perSecond("frames_received"),
			c.perSecond("transactions_done"), c.perSecond("completions"), c.percent(), fmt.Sprintf("%d/%d", p.InFlight, p.WindowFrames), fmt.Sprint(p.Queued),
			rtt, heard, c.perSecond("duplicates"), refused.perSecond(""), damaged.perSecond(wrongChecksum),
		}
		rows = append(rows, r)
	}
	return rows
}

var linkColumns = []topColumn{
	{title: "LINK", left: true}, {title: "WAY", left: true, rank: 1}, {title: "PEER", left: true, rank: 8}, {title: "STATE", left: true, rank: 4},
	{title: "MB/s", rank: 1}, {title: "MSG/s", rank: 2}, {title: "CREDITS", rank: 3}, {title: "FILLED", rank: 5}, {title: "HELD", rank: 6},
	{title: "UNACKED", rank: 7}, {title: "OWED", rank: 7},
}

// linkRows has a row for each half of a link.
func linkRows(was *metrics.Host, e *metrics.Endpoint, seconds float64) (rows []topRow) {
	old := make(map[uint32]*metrics.Link)
	if was != nil {
		for i := range was.Links {
			old[was.Links[i].Number] = &was.Links[i]
		}
	}
	for i := range e.Host.Links {
		l := &e.Host.Links[i]
		before := old[l.Number]
		if before == nil {
			before = new(metrics.Link)
		}
		name := l.Port
		if name == "" {
			name = "(descriptors)"
		}
		add := func(way string, before, now metrics.Traffic, free, all, filled, held int, unacked, owed string) {
			c := topChange{trafficCounts(before), trafficCounts(now), seconds}
			r := topRow{traffic: c.rate("bytes"), cells: []string{
				fmt.Sprintf("%s#%d", name, l.Number), way, l.Peer, l.State, c.megabytes("bytes"), c.perSecond("messages"),
				fmt.Sprintf("%d/%d", free, all), fmt.Sprint(filled), fmt.Sprint(held), unacked, owed,
			}}
			if l.State == metrics.LinkFailed {
				r.style = styleBad
			}
			rows = append(rows, r)
		}
		if o := l.Out; o != nil {
			var t metrics.Traffic
			if before.Out != nil {
				t = before.Out.Traffic
			}
			add("out", t, o.Traffic, o.Free, o.Buffers, o.Filled, o.Acquired, fmt.Sprint(o.Unacknowledged), "")
		}
		if in := l.In; in != nil {
			var t metrics.Traffic
			if before.In != nil {
				t = before.In.Traffic
			}
			add("in", t, in.Traffic, in.Free, in.Buffers, in.Waiting, in.Held, "", fmt.Sprint(in.Owed))
		}
	}
	return rows
}

func trafficCounts(t metrics.Traffic) map[string]uint64 {
	return map[string]uint64{"bytes": t.Bytes, "messages": t.Messages}
}
