// Package strangers says what those may take together who have proven nothing: who have neither
// answered from their address nor shown to have a key, nor been accepted by the program.
package strangers

// Memory is how many bytes an endpoint, or a listener of RDMA over TCP, keeps at most because of
// strangers, however many they are and whatever they send, unless its configuration asks for more: the
// program's memory, that of its stacks included. What the kernel keeps in buffers of sockets comes on
// top. The bounds in the rooms that meet strangers are such that they stay within, which the tests of each
// room measure.
const Memory = 32 << 20
