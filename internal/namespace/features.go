package namespace

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Offloads are the features that keep a virtual device from doing what a real
// wire sees: checksums that are really there, and packets no larger than its MTU.
var Offloads = []string{
	"tx-checksum-ip-generic", "tx-udp-segmentation", "tx-generic-segmentation", "tx-tcp-segmentation",
	"rx-gro", "rx-udp-gro-forwarding",
}

// SwitchOff takes features away from a device, by the names that ethtool has
// for them. It asks through netlink: the older way through ioctl needs unsafe.
func (n *Namespace) SwitchOff(device string, features []string) (err error) {
	n.In(func() { err = switchOff(device, features) })
	return err
}

func switchOff(device string, features []string) error {
	family, err := netlink.GenlFamilyGet(unix.ETHTOOL_GENL_NAME)
	if err != nil {
		return fmt.Errorf("the kernel has no ethtool over netlink: %w", err)
	}
	header := nl.NewRtAttr(unix.NLA_F_NESTED|unix.ETHTOOL_A_FEATURES_HEADER, nil)
	header.AddRtAttr(unix.ETHTOOL_A_HEADER_DEV_NAME, nl.ZeroTerminated(device))
	wanted := nl.NewRtAttr(unix.NLA_F_NESTED|unix.ETHTOOL_A_FEATURES_WANTED, nil)
	bits := wanted.AddRtAttr(unix.NLA_F_NESTED|unix.ETHTOOL_A_BITSET_BITS, nil)
	for _, name := range features {
		bit := bits.AddRtAttr(unix.NLA_F_NESTED|unix.ETHTOOL_A_BITSET_BITS_BIT, nil)
		bit.AddRtAttr(unix.ETHTOOL_A_BITSET_BIT_NAME, nl.ZeroTerminated(name)) // without a value: off
	}
	req := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_ACK)
	req.AddData(genericHeader{unix.ETHTOOL_MSG_FEATURES_SET, uint8(family.Version)})
	req.AddData(header)
	req.AddData(wanted)
	if _, err := req.Execute(unix.NETLINK_GENERIC, 0); err != nil {
		return fmt.Errorf("switch %v of %s off: %w", features, device, err)
	}
	return nil
}

// genericHeader is that of a message of generic netlink: command, version, and two bytes that are reserved. nl.Genlmsg has only
// the first two of them, and sends what lies behind it.
type genericHeader [nl.SizeofGenlmsg]byte

// Len implements [nl.NetlinkRequestData].
func (h genericHeader) Len() int { return len(h) }

// Serialize implements [nl.NetlinkRequestData].
func (h genericHeader) Serialize() []byte { return h[:] }
