class Repro(torch.nn.Module):
    def forward(self, a, b, ids):
        embedding = torch.ops.aten.embedding.default(a, ids)
        view = torch.ops.aten.view.default(embedding, [2, 3, 2, 8])
        permute = torch.ops.aten.permute.default(view, [0, 2, 1, 3])
        expand = torch.ops.aten.expand.default(permute, [2, 2, 3, 8])
        q = torch.ops.aten.reshape.default(expand, [4, 3, 8])
        bmm = torch.ops.aten.bmm.default(q, torch.ops.aten.transpose.int(q, 1, 2))
        _softmax = torch.ops.aten._softmax.default(bmm, -1, False)
        split = torch.ops.aten.split.Tensor(_softmax, 1, 2)
        c = torch.ops.aten.cat.default([split[0], split[1], split[2]], -1)
        s = torch.ops.aten.sum.dim_IntList(c, [0], True)
        sl = torch.ops.aten.slice.Tensor(s, 1, 1, 9223372036854775807)
        e = torch.ops.aten.einsum.default('...ij,jk', [sl, b])
        idx = torch.ops.aten.index.Tensor(a, [None, ids])
        w = torch.ops.aten.where.self(torch.ops.aten.gt.Scalar(e, 0), e, 1.0) * 2 - e
        return (w, idx.float().mean())
def load_args(reader):
    buf0 = reader.storage('x', 6400)
    reader.tensor(buf0, (100, 16), dtype=torch.bfloat16, is_leaf=True)  # a
    reader.tensor(buf0, (3, 5), is_leaf=True)  # b
    reader.tensor(buf0, (2, 3), dtype=torch.int64, is_leaf=True)  # ids
