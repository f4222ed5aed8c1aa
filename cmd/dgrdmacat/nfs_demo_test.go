package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
)

// TestNFSDemo checks what a demonstration prints: figures of what was written, read and verified, whatever its size.
func TestNFSDemo(t *testing.T) {
	t.Parallel()
	for args, figures := range map[string]string{
		"--size 3M": `3\.15 MB in \S+, \S+ MB/s, by 3 WRITE;(?s:.*)3\.15 MB in \S+, \S+ MB/s, by [34] READ;`,
		"--size 1":  `1 B in \S+, \S+ MB/s, by 1 WRITE;(?s:.*)1 B in \S+, \S+ MB/s, by 1 READ;`,
	} {
		code, out, stderr := runFor(t, patient(t), append([]string{"nfs", "demo"}, strings.Fields(args)...)...)
		want := regexp.MustCompile(`^served      files in memory, at rdma:127\.0\.0\.1:\d+/demo \(iWARP: RDMA over TCP\)
mounted     in \S+, by RPC-over-RDMA version 2, 64 calls at once
wrote       ` + strings.Replace(figures, "(?s:.*)", ` the server fetched the data with RDMA Reads
read        `, 1) + ` the server placed the data with RDMA Writes
verified    every byte, SHA-256 [0-9a-f]{64}
next        .*
$`)
		if code != exitOK || stderr != "" || !want.MatchString(out) {
			t.Errorf("%s: code %d, %s%s", args, code, out, stderr)
		}
	}
	for args, says := range map[string]string{"--size 0": "need 1 to 512M", "--size 513M": "need 1 to 512M", "x": `unexpected argument "x"`} {
		if code, out, stderr := runFor(t, t.Context(), append([]string{"nfs", "demo"}, strings.Fields(args)...)...); code != exitUsage || out != "" || !strings.Contains(stderr, says) {
			t.Errorf("%s: code %d, %s%s", args, code, out, stderr)
		}
	}
	ended, stop := context.WithCancelCause(t.Context())
	stop(errInterrupted)
	if code, out, stderr := runFor(t, ended, "nfs", "demo"); code != exitInterrupted || out != "" || !strings.Contains(stderr, "interrupted") {
		t.Errorf("interrupted: code %d, %s%s", code, out, stderr)
	}
}
