package netns

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// EtherType is that of DG/RDMA frames.
const EtherType = 0xF042

// Filter is a packet filter that drops.
type Filter struct {
	t     testing.TB
	nft   *nftables.Conn
	table *nftables.Table
	chain *nftables.Chain
}

// Lose makes the kernel lose that many of 100 frames that come in: datagrams and
// DG/RDMA frames only, so that neighbours still find each other.
func (n *Namespace) Lose(t testing.TB, percent int) *Filter {
	t.Helper()
	f := n.newFilter(t, nftables.TableFamilyNetdev, ingress())
	f.drop(append(protocol(unix.ETH_P_IP, 9, unix.IPPROTO_UDP), chance(percent)...))
	f.drop(append(protocol(unix.ETH_P_IPV6, 6, unix.IPPROTO_UDP), chance(percent)...))
	f.drop(append(protocol(EtherType, 0), chance(percent)...))
	f.flush()
	return f
}

// LoseIPv4 makes the kernel lose that many of 100 packets of IPv4 that come in, whatever
// they carry, as long as the namespace lasts.
func (n *Namespace) LoseIPv4(percent int) error {
	f, err := n.openFilter(nftables.TableFamilyNetdev, ingress())
	if err != nil {
		return err
	}
	f.drop(append(protocol(unix.ETH_P_IP, 0), chance(percent)...))
	if err := f.nft.Flush(); err != nil {
		return fmt.Errorf("nftables, chain %s: %w", f.chain.Name, err)
	}
	return nil
}

// ingress is where packets come in.
func ingress() *nftables.Chain {
	return &nftables.Chain{
		Name: "ingress", Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookIngress,
		Priority: nftables.ChainPriorityFilter, Device: Device,
	}
}

// chance matches that many of 100.
func chance(percent int) []expr.Any {
	return []expr.Any{
		&expr.Numgen{Register: 1, Type: unix.NFT_NG_RANDOM, Modulus: 100},
		&expr.Byteorder{SourceRegister: 1, DestRegister: 1, Op: expr.ByteorderHton, Len: 4, Size: 4},
		&expr.Cmp{Register: 1, Op: expr.CmpOpLt, Data: binary.BigEndian.AppendUint32(nil, uint32(percent))},
	}
}

// Forbid makes the kernel refuse to send datagrams: whoever tries gets EPERM.
func (n *Namespace) Forbid(t testing.TB) *Filter {
	t.Helper()
	f := n.newFilter(t, nftables.TableFamilyINet, &nftables.Chain{
		Name: "output", Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityFilter,
	})
	f.drop([]expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: []byte{unix.IPPROTO_UDP}},
	})
	f.flush()
	return f
}

func (n *Namespace) newFilter(t testing.TB, family nftables.TableFamily, chain *nftables.Chain) *Filter {
	t.Helper()
	f, err := n.openFilter(family, chain)
	if err != nil {
		t.Fatal(err)
	}
	f.t = t
	return f
}

func (n *Namespace) openFilter(family nftables.TableFamily, chain *nftables.Chain) (*Filter, error) {
	nft, err := nftables.New(nftables.WithNetNSFd(int(n.Handle)))
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	table := nft.AddTable(&nftables.Table{Family: family, Name: fmt.Sprintf("dgrdma_%s", chain.Name)})
	chain.Table = table
	return &Filter{nft: nft, table: table, chain: nft.AddChain(chain)}, nil
}

// protocol matches an EtherType, and if next is given a byte of the header
// behind it.
func protocol(etherType uint16, offset uint32, next ...byte) []expr.Any {
	match := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: 1},
		&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: binary.BigEndian.AppendUint16(nil, etherType)},
	}
	if len(next) > 0 {
		match = append(match,
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(len(next))},
			&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: next})
	}
	return match
}

// drop counts and drops what matches.
func (f *Filter) drop(match []expr.Any) {
	f.nft.AddRule(&nftables.Rule{
		Table: f.table, Chain: f.chain, Exprs: append(match, &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}),
	})
}

func (f *Filter) flush() {
	f.t.Helper()
	if err := f.nft.Flush(); err != nil {
		f.t.Fatalf("nftables, chain %s: %v", f.chain.Name, err)
	}
}

// Dropped returns how many packets were dropped.
func (f *Filter) Dropped() (n uint64) {
	f.t.Helper()
	rules, err := f.nft.GetRules(f.table, f.chain)
	if err != nil {
		f.t.Fatalf("nftables, counters of chain %s: %v", f.chain.Name, err)
	}
	for _, r := range rules {
		for _, e := range r.Exprs {
			if c, ok := e.(*expr.Counter); ok {
				n += c.Packets
			}
		}
	}
	return n
}

// Remove ends the filter.
func (f *Filter) Remove() {
	f.t.Helper()
	f.nft.DelTable(f.table)
	f.flush()
}
