module {
  func.func @main(%x: tensor<2x9x7x3xf32>, %w: tensor<3x3x3x8xf32>, %t: tensor<50x8xf32>, %i: tensor<2x3x1xi32>) -> (tensor<2x5x4x8xf32>, tensor<2x3x8xf32>, tensor<2xf32>) {
    %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [0, 2]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x9x7x3xf32>, tensor<3x3x3x8xf32>) -> tensor<2x5x4x8xf32>
    %1 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 8>}> : (tensor<50x8xf32>, tensor<2x3x1xi32>) -> tensor<2x3x8xf32>
    %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %2 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [1, 2, 3] : (tensor<2x9x7x3xf32>, tensor<f32>) -> tensor<2xf32>
    %3 = stablehlo.slice %t [1:3, 0:8:2] : (tensor<50x8xf32>) -> tensor<2x4xf32>
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
    %5 = stablehlo.concatenate %4, %4, dim = 1 : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
    %6 = stablehlo.pad %5, %c, low = [0, 1], high = [1, 0], interior = [0, 0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<5x5xf32>
    %7 = "stablehlo.all_reduce"(%6) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %8 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %8 : tensor<f32>
    }) : (tensor<5x5xf32>) -> tensor<5x5xf32>
    %9 = "stablehlo.reduce_window"(%7, %c) <{window_dimensions = array<i64: 5, 1>, padding = dense<[[4, 0], [0, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %8 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %8 : tensor<f32>
    }) : (tensor<5x5xf32>, tensor<f32>) -> tensor<5x5xf32>
    %10 = stablehlo.iota dim = 0 : tensor<4xi32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<4xi32>) -> tensor<4x5xi32>
    %12:2 = stablehlo.custom_call @f(%11, %9) : (tensor<4x5xi32>, tensor<5x5xf32>) -> (tensor<4xi32>, tuple<tensor<f32>, tensor<2xf32>>)
    %13 = stablehlo.get_tuple_element %12#1[1] : (tuple<tensor<f32>, tensor<2xf32>>) -> tensor<2xf32>
    return %0, %1, %13 : tensor<2x5x4x8xf32>, tensor<2x3x8xf32>, tensor<2xf32>
  }
}
