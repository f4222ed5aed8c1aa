package main

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestListenAtEveryAddress: listen with a port alone is reached at any address, says so, and
// its URL is one of them.
func TestListenAtEveryAddress(t *testing.T) {
	t.Parallel()
	l, url := listenCat(t, []string{"--keep", fmt.Sprintf("udp:%d", fixture.FreePort(t))})
	l.saysSoon(&l.stderr, `that is at every address of this machine: in place of`)
	host := regexp.MustCompile(`^(ocpi-udp-rdma:)[^;]*(;.*)$`)
	if !host.MatchString(url) {
		t.Fatal(url)
	}
	for _, at := range []string{"", "127.0.0.1", "[::1]", "127.0.0.2"} {
		to := url
		if at != "" {
			to = host.ReplaceAllString(url, "${1}"+at+"${2}")
		}
		startCat(t, []string{"send", to}, stdinFrom([]byte("here"))).end(exitOK, saysSent(4))
	}
}
