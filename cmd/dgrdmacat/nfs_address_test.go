package main

import (
	"errors"
	"strings"
	"testing"
)

// TestNFSAddresses checks what is taken as the address of a file of a server, and what is said of other texts.
func TestNFSAddresses(t *testing.T) {
	for s, want := range map[string]nfsAddress{
		"rdma:10.0.0.2":                   {rpcAddress{"rdma", "10.0.0.2", ""}, "", false, false},
		"tcp:camera.local/":               {rpcAddress{"tcp", "camera.local", ""}, "/", true, false},
		"tcp:camera:2049/export":          {rpcAddress{"tcp", "camera", "2049"}, "/export", false, false},
		"tcp:camera:/export//a/../b/":     {rpcAddress{"tcp", "camera", ""}, "/export/b", true, false},
		"rdma:[fe80::1%eth0]:20049/a:b":   {rpcAddress{"rdma", "fe80::1%eth0", "20049"}, "/a:b", false, false},
		"rdma:[::1]/x":                    {rpcAddress{"rdma", "::1", ""}, "/x", false, false},
		"rdma:2001:db8::1/x":              {rpcAddress{"rdma", "2001:db8::1", ""}, "/x", false, false},
		"tcp:10.0.0.2/a/.":                {rpcAddress{"tcp", "10.0.0.2", ""}, "/a", true, true},
		"tcp:10.0.0.2/../../etc":          {rpcAddress{"tcp", "10.0.0.2", ""}, "/etc", false, false},
		"tcp:10.0.0.2/with space/and\x1b": {rpcAddress{"tcp", "10.0.0.2", ""}, "/with space/and\x1b", false, false},
	} {
		if got, err := parseNFS(s); err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for s, want := range map[string]string{
		"/export":               "begins with its transport: need rdma:HOST/PATH",
		"camera:/export":        "begins with its transport: did you mean rdma:camera/export, or tcp:camera/export?",
		"camera/export":         "begins with its transport: did you mean rdma:camera/export, or tcp:camera/export?",
		"udp:camera/export":     `"udp" is no transport of ONC RPC here: need`,
		"camera:2049/export":    `"camera" is no transport of ONC RPC here: need`,
		"nfs://camera/export":   "there is no // in an address: need",
		"tcp://camera/export":   "there is no // in an address: need",
		"tcp:":                  "there is no host in it: need",
		"tcp:/export":           "there is no host in it: need",
		"tcp::2049/export":      "there is no host in it: need",
		"tcp:camera:0/export":   `port "0" is no number from 1 to 65535: need`,
		"tcp:camera:nfs/export": `port "nfs" is no number from 1 to 65535: need`,
		"tcp:camera:65536/":     `port "65536" is no number`,
		"tcp:[::1/export":       "host and port cannot be read: need",
		"tcp:[::1]2049/export":  "host and port cannot be read: need",
		"tcp:a:b:c/export":      "host and port cannot be read: need",
	} {
		var bad usageError
		if got, err := parseNFS(s); !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), s+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	if _, err := parseNFS(""); err == nil || !strings.HasPrefix(err.Error(), "the address is empty (unset variable?): need ") {
		t.Error(err)
	}
}
