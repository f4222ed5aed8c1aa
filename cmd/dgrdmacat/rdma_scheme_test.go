package main

import (
	"strings"
	"testing"
)

// TestRDMAScheme checks that an address of RDMA over TCP that begins as those of nfs do is told how it begins here.
func TestRDMAScheme(t *testing.T) {
	for args, says := range map[string]string{
		"rping --to rdma:127.0.0.1":           "addresses of RDMA over TCP begin with tcp: here, and with rdma: in nfs and rpcinfo alone: write tcp:127.0.0.1\n",
		"ping --op send --to rdma:127.0.0.1":  "is not tcp:HOST:PORT\n",
		"bench --op send --to rdma:127.0.0.1": "give an address such as tcp:",
		"ping --to rdma:127.0.0.1":            "rdma:127.0.0.1: that is an address of nfs and rpcinfo, and no endpoint string of DG/RDMA: give udp:HOST:PORT",
	} {
		code, out, stderr := runFor(t, patient(t), strings.Fields(args)...)
		if code != exitUsage || out != "" || !strings.Contains(stderr, says) {
			t.Errorf("%s: code %d, %s%s", args, code, out, stderr)
		}
	}
}
