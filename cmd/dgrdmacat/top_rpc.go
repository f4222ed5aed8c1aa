package main

import (
	"fmt"
	"maps"

	"github.com/dgrdma/dgrdma/metrics"
)

var rpcColumns = []topColumn{
	{title: "RPC", left: true}, {title: "CONNS", rank: 3}, {title: "CALLS/s", rank: 1}, {title: "READ MB/s", rank: 1}, {title: "WRITE MB/s", rank: 1},
	{title: "ERRORS/s", rank: 2}, {title: "AGAIN/s", rank: 4}, {title: "REFUSED", rank: 5},
}

// rpcErrors are counters of calls without results, and rpcRefused those of what was not served.
var (
	rpcErrors  = []string{"calls_unavailable", "calls_garbage", "calls_denied", "calls_failed", "errors"}
	rpcRefused = []string{"malformed", "connections_refused", "connections_evicted", "connections_slow"}
)

// rpcTable shows servers of ONC RPC.
func rpcTable(before, now *metrics.View, seconds float64) topTable {
	t := topTable{columns: rpcColumns}
	old := make(map[string]map[string]uint64)
	if seconds > 0 {
		for i := range before.RPC {
			old[before.RPC[i].Name] = rpcCounters(&before.RPC[i])
		}
	}
	for i := range now.RPC {
		s := &now.RPC[i]
		c := topChange{old[s.Name], rpcCounters(s), seconds}
		ever := topChange{now: s.Counters}
		r := topRow{traffic: c.rate("calls"), cells: []string{
			s.Name, fmt.Sprint(s.Connections), c.perSecond("calls"), c.megabytes("read"), c.megabytes("write"), c.perSecond(rpcErrors...),
			c.perSecond("calls_duplicate"), shortNumber(float64(ever.counted(rpcRefused...))),
		}}
		if seconds > 0 && c.counted("calls_failed") > 0 {
			r.style = styleBad
		}
		t.rows = append(t.rows, r)
	}
	return t
}

// rpcCounters are the counters of a server, with those of NFS.
func rpcCounters(s *metrics.RPC) map[string]uint64 {
	all := maps.Clone(s.Counters)
	if all == nil {
		all = make(map[string]uint64)
	}
	all["read"], all["write"] = s.ReadBytes, s.WriteBytes
	for status, n := range s.NFS {
		if status != "NFS3_OK" {
			all["errors"] += n
		}
	}
	return all
}
