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
	f := n.newFilter(t, nftables.TableFamilyNetdev, &nftables.Chain{
		Name: "ingress", Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookIngress,
		Priority: nftables.ChainPriorityFilter, Device: Device,
	})
	chance := []expr.Any{
		&expr.Numgen{Register: 1, Type: unix.NFT_NG_RANDOM, Modulus: 100},
		&expr.Byteorder{SourceRegister: 1, DestRegister: 1, Op: expr.ByteorderHton, Len: 4, Size: 4},
		&expr.Cmp{Register: 1, Op: expr.CmpOpLt, Data: binary.BigEndian.AppendUint32(nil, uint32(percent))},
	}
	f.drop(append(protocol(unix.ETH_P_IP, 9, unix.IPPROTO_UDP), chance...))
	f.drop(append(protocol(unix.ETH_P_IPV6, 6, unix.IPPROTO_UDP), chance...))
	f.drop(append(protocol(EtherType, 0), chance...))
	f.flush()
	return f
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
	nft, err := nftables.New(nftables.WithNetNSFd(int(n.handle)))
	if err != nil {
		t.Fatalf("nftables: %v", err)
	}
	table := nft.AddTable(&nftables.Table{Family: family, Name: fmt.Sprintf("dgrdma_%s", chain.Name)})
	chain.Table = table
	return &Filter{t: t, nft: nft, table: table, chain: nft.AddChain(chain)}
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
