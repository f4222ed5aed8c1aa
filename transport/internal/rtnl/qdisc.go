package rtnl

import (
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"
)

// sizeofTcmsg is that of struct tcmsg, which has the interface where struct ifinfomsg has it.
const sizeofTcmsg = 20

// Qdiscs returns the kinds of the queueing disciplines of an interface, as "fq_codel": those of what is
// sent, and "ingress" or "clsact" if there are filters.
func (s *Socket) Qdiscs(index int) (kinds []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var fixed [sizeofTcmsg]byte
	s.request(unix.RTM_GETQDISC, fixed[:]...)
	err = s.askForAll(func(b []byte) {
		if len(b) >= sizeofTcmsg && int(binary.NativeEndian.Uint32(b[offIndex:])) == index {
			kinds = append(kinds, strings.TrimRight(string(attribute(b[sizeofTcmsg:], unix.TCA_KIND)), "\x00"))
		}
	})
	return kinds, err
}
