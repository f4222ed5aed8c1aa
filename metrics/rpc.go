package metrics

import "strconv"

// RPC is a server of ONC RPC, with all its connections, over TCP and over RDMA.
type RPC struct {
	Name        string            `json:"name"` // as the program calls it, such as where it listens
	Connections int               `json:"connections"`
	Credits     int               `json:"credits"`              // calls that each connection may have at once
	Counters    map[string]uint64 `json:"counters"`             // of all connections, ended ones included
	Procedures  []RPCProcedure    `json:"procedures,omitempty"` // those that were called
	NFS         map[string]uint64 `json:"nfs,omitempty"`        // of a server of NFS: calls by their status
	ReadBytes   uint64            `json:"nfs_read_bytes"`
	WriteBytes  uint64            `json:"nfs_written_bytes"`
}

// RPCProcedure is a procedure of a server of ONC RPC, with the calls of it that came.
type RPCProcedure struct {
	Program string `json:"program"`
	Version uint32 `json:"version"`
	Name    string `json:"name"`
	TCP     uint64 `json:"tcp"`
	RDMA    uint64 `json:"rdma"`
}

// RPCSource is a server of ONC RPC that is to be shown: see [Source].
type RPCSource interface {
	Of() any
	Look() (s RPC, ok bool)
}

// AddRPC adds such a source. The collector shows it until it is closed. Nil is no source, and shows nothing.
func (c *Collector) AddRPC(s RPCSource) {
	if s == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.add(s)
}

var ofRPC = kindred[RPC]{[]string{"server"}}

// rpcFamilies are those of servers that have these counters.
func rpcFamilies(counters []Counter) []family[RPC] {
	return append([]family[RPC]{
		ofRPC.gauge("dgrdma_rpc_connections", "Connections that are open.", func(s *RPC) float64 { return float64(s.Connections) }),
		ofRPC.gauge("dgrdma_rpc_credits", "Calls that each connection may have at once.", func(s *RPC) float64 { return float64(s.Credits) }),
		ofRPC.counters("dgrdma_rpc_procedure_calls_total", "Calls that came, by procedure and by what carried them; procedures that were not called are left out.", []string{"program", "version", "procedure", "transport"},
			func(w *samples, s *RPC) {
				for _, p := range s.Procedures {
					version := strconv.FormatUint(uint64(p.Version), 10)
					if p.TCP > 0 {
						w.add(float64(p.TCP), p.Program, version, p.Name, "tcp")
					}
					if p.RDMA > 0 {
						w.add(float64(p.RDMA), p.Program, version, p.Name, "rdma")
					}
				}
			}),
		ofRPC.counters("dgrdma_nfs_calls_total", "Calls of NFS and MOUNT that were carried out, by their status; statuses that did not occur are left out.", []string{"status"},
			func(w *samples, s *RPC) {
				for status, n := range s.NFS {
					w.add(float64(n), status)
				}
			}),
		ofRPC.counters("dgrdma_nfs_bytes_total", "Bytes that READ and WRITE have moved.", []string{"of"}, func(w *samples, s *RPC) {
			if s.NFS == nil {
				return
			}
			w.add(float64(s.ReadBytes), "read")
			w.add(float64(s.WriteBytes), "write")
		}),
	}, ofRPC.named("dgrdma_rpc_", counters, func(s *RPC) map[string]uint64 { return s.Counters })...)
}
