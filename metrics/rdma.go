package metrics

// RDMA is a host of RDMA over TCP, with all its queue pairs.
type RDMA struct {
	Name       string            `json:"name"` // as the program calls it, such as where it listens
	QueuePairs int               `json:"queue_pairs"`
	Counters   map[string]uint64 `json:"counters"` // of all queue pairs, ended ones included
	Done       map[string]uint64 `json:"done"`     // operations of this side, by what they are
	Served     map[string]uint64 `json:"served"`   // likewise of peers
}

// RDMASource is a host of RDMA over TCP that is to be shown: see [Source].
type RDMASource interface {
	Of() any
	Look() (h RDMA, ok bool)
}

// AddRDMA adds such a source. The collector shows it until it is closed. Nil is no source, and shows nothing.
func (c *Collector) AddRDMA(s RDMASource) {
	if s == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hosts.add(s)
}

var ofRDMA = kindred[RDMA]{[]string{"host"}}

// rdmaFamilies are those of hosts that have these counters.
func rdmaFamilies(counters []Counter) []family[RDMA] {
	return append([]family[RDMA]{
		ofRDMA.gauge("dgrdma_rdma_queue_pairs", "Queue pairs that are open.", func(h *RDMA) float64 { return float64(h.QueuePairs) }),
		ofRDMA.counters("dgrdma_rdma_operations_total", "Operations that are done, by what they are, and whether this side asked for them or a peer.", []string{"op", "of"},
			func(w *samples, h *RDMA) {
				for op, n := range h.Done {
					w.add(float64(n), op, "host")
				}
				for op, n := range h.Served {
					w.add(float64(n), op, "peer")
				}
			}),
	}, ofRDMA.named("dgrdma_rdma_", counters, func(h *RDMA) map[string]uint64 { return h.Counters })...)
}
