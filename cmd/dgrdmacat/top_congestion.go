package main

import (
	"cmp"

	"github.com/dgrdma/dgrdma/metrics"
)

var congestionColumns = []topColumn{
	{title: "CONGESTION", left: true}, {title: "ENDPOINT", left: true, rank: 9}, {title: "CC", left: true, rank: 1}, {title: "STATE", left: true, rank: 2},
	{title: "BW MB/s", rank: 1}, {title: "PACED MB/s", rank: 4}, {title: "MIN RTT", rank: 3}, {title: "LAST RTT", rank: 5},
	{title: "FLIGHT kB", rank: 2}, {title: "WINDOW kB", rank: 4}, {title: "LONG kB", rank: 6}, {title: "SHORT kB", rank: 7}, {title: "ECN", left: true, rank: 7}, {title: "BECAUSE", left: true, rank: 8},
}

// congestionRows has a row for each peer to which something was sent.
func congestionRows(e *metrics.Endpoint, peers []topRow) (rows []topRow) {
	for i := range e.Peers {
		p := &e.Peers[i]
		c := p.Congestion
		if c == nil || p.RTTLatest == 0 {
			continue
		}
		rows = append(rows, topRow{traffic: peers[i].traffic, style: peers[i].style, cells: []string{
			p.Name, e.Name, c.Controller, cmp.Or(c.State, "-"), orDash(c.Bandwidth, megabytes), orDash(c.Pacing, megabytes), orDash(c.MinRTT, briefTime), briefTime(p.RTTLatest),
			kilobytes(float64(p.OnWire)), orDash(float64(p.WindowBytes), kilobytes), orDash(float64(c.LongTerm), kilobytes), orDash(float64(c.ShortTerm), kilobytes), cmp.Or(p.ECN, "-"), c.Why,
		}})
	}
	return rows
}

// orDash shows a value, or that it is not known.
func orDash(v float64, show func(float64) string) string {
	if v == 0 {
		return "-"
	}
	return show(v)
}

func megabytes(v float64) string { return fewDecimals(v / 1e6) }

func kilobytes(v float64) string { return fewDecimals(v / 1e3) }
