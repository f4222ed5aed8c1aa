package main

import (
	"fmt"

	"github.com/dgrdma/dgrdma/metrics"
)

var rdmaColumns = []topColumn{
	{title: "RDMA", left: true}, {title: "QPS", rank: 3}, {title: "OUT MB/s", rank: 1}, {title: "IN MB/s", rank: 1},
	{title: "OUT OP/s", rank: 2}, {title: "IN OP/s", rank: 2}, {title: "REJECTED", rank: 4}, {title: "FAULTS", rank: 5},
	{title: "FULL", rank: 6},
}

// What a host of RDMA over TCP sends and receives: bytes of operations.
var (
	rdmaOut = []string{"sent_bytes", "fetched_bytes"}
	rdmaIn  = []string{"received_bytes", "written_bytes", "read_bytes"}
	// rdmaFull are counters of bounds that were reached.
	rdmaFull = []string{"crowded_out", "requests_dropped", "rejections_cut_short", "queue_full"}
)

// rdmaTable shows hosts of RDMA over TCP.
func rdmaTable(before, now *metrics.View, seconds float64) topTable {
	t := topTable{columns: rdmaColumns}
	old := make(map[string]map[string]uint64)
	if seconds > 0 {
		for _, h := range before.RDMA {
			old[h.Name] = h.Counters
		}
	}
	for _, h := range now.RDMA {
		c := topChange{old[h.Name], h.Counters, seconds}
		faults := []string{"terminates_sent", "terminates_received", "silent_peers"}
		r := topRow{traffic: c.rate(rdmaOut...) + c.rate(rdmaIn...)}
		if seconds > 0 && c.counted(faults...) > 0 {
			r.style = styleBad
		}
		ever := topChange{now: h.Counters}
		r.cells = []string{
			h.Name, fmt.Sprint(h.QueuePairs), c.megabytes(rdmaOut...), c.megabytes(rdmaIn...),
			c.perSecond("sent", "asked"), c.perSecond("received", "written", "answered"),
			fmt.Sprint(ever.counted("connections_rejected")), fmt.Sprint(ever.counted(faults...)),
			shortNumber(float64(ever.counted(rdmaFull...))),
		}
		t.rows = append(t.rows, r)
	}
	return t
}
