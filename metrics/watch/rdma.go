package watch

import (
	"strings"

	"github.com/dgrdma/dgrdma/metrics"
	"github.com/dgrdma/dgrdma/verbs"
)

// RDMA makes a source of a host of RDMA over TCP, under that name.
func RDMA(h *verbs.Host, name string) metrics.RDMASource { return rdma{h, name} }

type rdma struct {
	host *verbs.Host
	name string
}

func (s rdma) Of() any { return s.host }

func (s rdma) Look() (metrics.RDMA, bool) {
	stats := s.host.Stats()
	return metrics.RDMA{
		Name: s.name, QueuePairs: stats.QueuePairs, Counters: metrics.Counts(&stats), Done: byName(stats.Done[:]), Served: byName(stats.Served[:]),
	}, !stats.Closed
}

// byName has counts of operations by their names, in lower case as labels are.
func byName(counts []uint64) map[string]uint64 {
	m := make(map[string]uint64, len(counts))
	for op, n := range counts {
		m[strings.ToLower(verbs.Op(op).String())] = n
	}
	return m
}
