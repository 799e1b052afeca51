func.func @main(%w: tensor<3x8x8xf32>, %x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%a = %w, %i = %zero, %v = %x) : tensor<3x8x8xf32>, tensor<i32>, tensor<4x8xf32>
   cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.compare  LT, %i, %n,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_slice %a, %i, %z, %z, sizes = [1, 8, 8] : (tensor<3x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
    %3 = stablehlo.dot %v, %2 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %4 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %a, %4, %3 : tensor<3x8x8xf32>, tensor<i32>, tensor<4x8xf32>
  }
  return %0#2 : tensor<4x8xf32>
}
