package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Transports of ONC RPC, as they begin an address.
var rpcTransports = []string{"rdma", "tcp"}

// rpcAddress is where a server of ONC RPC is: rdma:HOST[:PORT] or tcp:HOST[:PORT].
type rpcAddress struct {
	transport  string
	host, port string // port is "" if it was not given
}

// String is what [rpc.Dial] takes, if there is a port.
func (a rpcAddress) String() string {
	if a.port == "" {
		return a.transport + ":" + hostInAddress(a.host)
	}
	return a.transport + ":" + net.JoinHostPort(a.host, a.port)
}

// hostInAddress is a host as it stands in an address: an IP address of version 6 is in brackets.
func hostInAddress(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// parseRPC reads the address of a server. Its error is a reason only.
func parseRPC(s string) (a rpcAddress, err error) {
	transport, rest, found := strings.Cut(s, ":")
	switch known := slices.Contains(rpcTransports, transport); {
	case !known && found && transport != "":
		return a, fmt.Errorf("%q is no transport of ONC RPC here", transport)
	case !known:
		return a, errors.New("an address begins with its transport")
	}
	a.transport, a.host = transport, rest
	unreadable := errors.New("host and port cannot be read")
	switch {
	case strings.HasPrefix(rest, "//"):
		return a, errors.New("there is no // in an address")
	case strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]"):
		a.host = rest[1 : len(rest)-1]
	case strings.HasPrefix(rest, "[") || strings.Count(rest, ":") == 1:
		if a.host, a.port, err = net.SplitHostPort(rest); err != nil {
			return a, unreadable
		}
		if n, err := strconv.ParseUint(a.port, 10, 16); err != nil || n == 0 {
			return a, fmt.Errorf("port %q is no number from 1 to 65535", a.port)
		}
	}
	if _, err := netip.ParseAddr(a.host); err != nil && strings.ContainsAny(a.host, ":[]%") {
		return a, unreadable
	}
	if a.host == "" {
		return a, errors.New("there is no host in it")
	}
	return a, nil
}

// nfsAddress is where a file or a directory of a server of NFS is: an address, and a path from the root of the server on.
type nfsAddress struct {
	rpcAddress
	path  string // clean; "" if it was not given
	slash bool   // it ended with a slash, so that a directory is meant
	// contents says that it ended with "/.": what is in the directory is meant.
	contents bool
}

const needNFS = "need rdma:HOST/PATH or tcp:HOST/PATH, as in rdma:10.0.0.2/export/file; a port follows HOST, as in rdma:10.0.0.2:20049/export"

func (a nfsAddress) String() string { return a.rpcAddress.String() + a.path }

// noDirectory is the error of an address that ends with a slash, where a file is.
func (a nfsAddress) noDirectory() error {
	return fmt.Errorf("%v is not a directory: leave out the / at its end", a)
}

// parseNFS reads the address of a file or a directory.
func parseNFS(s string) (a nfsAddress, err error) {
	server, rest := s, ""
	if i := strings.Index(s, "/"); i >= 0 {
		server, rest = s[:i], s[i:]
	}
	transport, host, _ := strings.Cut(server, ":")
	known := slices.Contains(rpcTransports, transport)
	switch {
	case s == "":
		return a, badUsage("the address is empty (unset variable?): %s", needNFS)
	case known && host == "" && strings.HasPrefix(rest, "//"), transport == "nfs" && host == "":
		return a, badUsage("%s: there is no // in an address: %s", s, needNFS)
	case !known && rest != "" && transport != "" && host == "": // as mount has it
		return a, badUsage("%s: an address begins with its transport: did you mean rdma:%s%s, or tcp:%[2]s%[3]s?", s, transport, rest)
	}
	if known {
		server = strings.TrimSuffix(server, ":") // the colon that mount wants
	}
	if a.rpcAddress, err = parseRPC(server); err != nil {
		return a, badUsage("%s: %w: %s", s, err, needNFS)
	}
	if rest != "" {
		a.contents = strings.HasSuffix(rest, "/.")
		a.path, a.slash = path.Clean(rest), a.contents || strings.HasSuffix(rest, "/")
	}
	return a, nil
}
